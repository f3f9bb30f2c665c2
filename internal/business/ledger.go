package business

import (
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Attributes of the ledger's rows. A balance row also has one attribute per
// currency; see [BalanceAttribute].
const (
	// AttrAmount is an entry's effect on the balance in minor units, with its
	// sign; on a projection the amount that the event names, without.
	AttrAmount = "amount"
	// AttrEntries counts, on a balance row, the entries ever applied.
	AttrEntries = "entries"
	// AttrRun is the run of the event that made an entry.
	AttrRun = "run"
	// AttrType is the provider's name of the event that made an entry.
	AttrType = "type"
)

// BalanceAttribute names the sum of one currency on a balance row, in minor
// units. Currencies never meet in one number.
func BalanceAttribute(currency string) string { return "balance_" + currency }

// money is an amount in minor units with its sign.
type money struct {
	amount   int64
	currency string
}

// effect returns what an event does to its object's balance, nothing where no
// money is concerned.
func effect(f webhook.Facts) (money, error) {
	switch {
	case f.Credit == 0 || f.Amount == 0:
		return money{}, nil
	case f.Credit < -1 || f.Credit > 1:
		return money{}, permanent("bad_credit")
	case f.Amount < 0:
		// The sign is the credit's; a second one would turn money around unseen.
		return money{}, permanent("negative_amount")
	case !isCurrency(f.Currency):
		return money{}, permanent("bad_currency")
	}
	return money{int64(f.Credit) * f.Amount, f.Currency}, nil
}

// ledger returns an event's entry and its addition to the balance. Neither has
// a condition: they are committed with the event's mark, and must be able to
// show if that ever fails. The balance is added to in the store, never computed
// from what was read.
func ledger(ev webhook.Event, m money) []webhook.Action {
	entry := webhook.Item{
		AttrAmount: m.amount, AttrInbox: string(ev.InboxID), AttrRun: int64(ev.Run),
		AttrProvider: string(ev.Provider), AttrKind: string(ev.Kind), AttrType: string(ev.Type),
	}
	if m.currency != "" {
		entry[AttrCurrency] = m.currency
	}
	if ev.Facts.State != "" {
		entry[AttrState] = ev.Facts.State
	}
	balance := webhook.UpdateItem(LedgerBalanceKey(ev), nil).Adding(AttrEntries, 1)
	if m.amount != 0 {
		balance = balance.Adding(BalanceAttribute(m.currency), m.amount)
	}
	return []webhook.Action{webhook.PutItem(LedgerEntryKey(ev), entry), balance}
}

func isCurrency(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return len(s) == 3
}

// checkObject refuses facts that name no object we could keep.
func checkObject(f webhook.Facts) error {
	switch {
	case f.ObjectID == "":
		return permanent("no_object_id")
	case len(f.ObjectID) > webhook.ObjectIDBytesMax:
		return permanent("object_id_too_long")
	}
	return nil
}

func permanent(code string) error { return fault.New(fault.Permanent, code, nil) }
