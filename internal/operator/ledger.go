package operator

import (
	"context"
	"fmt"
	"strings"

	"dakghar/internal/business"
	"dakghar/internal/webhook"
)

// Account is one object's ledger: what its applied events came to.
type Account struct {
	ObjectType webhook.ObjectType
	ObjectID   string
	// Applied counts the entries ever added, also one that was added twice.
	Applied int64
	// Balances are sums by currency, in minor units.
	Balances map[string]int64
	Entries  []Entry
}

// Entry is the effect of one run of one event.
type Entry struct {
	InboxID  webhook.InboxID
	Run      int64
	Type     webhook.EventType
	Amount   int64 // minor units, with its sign
	Currency string
}

func objectTypes() []webhook.ObjectType {
	return []webhook.ObjectType{
		webhook.Payment, webhook.Order, webhook.Subscription, webhook.Refund, webhook.Dispute, webhook.Account, webhook.Object,
	}
}

// Ledger returns the accounts of an endpoint's object, one for each type that
// has an object of this id.
func (o *Operator) Ledger(ctx context.Context, id webhook.EndpointID, object string) ([]Account, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return nil, err
	}
	if object == "" {
		return nil, misuse("--object says which object's ledger to show")
	}
	var accounts []Account
	for _, t := range objectTypes() {
		account, found, err := o.account(ctx, webhook.Event{
			Tenant: e.Tenant, Provider: e.Provider, Endpoint: e.ID, Facts: webhook.Facts{ObjectType: t, ObjectID: object},
		})
		if err != nil {
			return nil, unreachable("the business table", err)
		}
		if found {
			accounts = append(accounts, account)
		}
	}
	if len(accounts) == 0 {
		return nil, refuse("object_unknown", fmt.Sprintf("no event of endpoint %s was applied to an object %q", id, object),
			run("an event's row names its object:", "inbox", "list", "--endpoint", string(id)))
	}
	return accounts, nil
}

func (o *Operator) account(ctx context.Context, ev webhook.Event) (Account, bool, error) {
	key := business.LedgerBalanceKey(ev)
	balance, found, err := o.Business.Get(ctx, key)
	if err != nil || !found {
		return Account{}, false, err
	}
	a := Account{
		ObjectType: ev.Facts.ObjectType, ObjectID: ev.Facts.ObjectID,
		Applied: number(balance, business.AttrEntries), Balances: map[string]int64{},
	}
	for name := range balance {
		if currency, ok := strings.CutPrefix(name, business.BalanceAttribute("")); ok {
			a.Balances[currency] = number(balance, name)
		}
	}
	// Every entry's key begins like that of an entry without event and run.
	prefix, _, _ := strings.Cut(business.LedgerEntryKey(ev).SK, "#")
	for row, err := range o.Business.Rows(ctx, key.PK, prefix+"#") {
		if err != nil {
			return Account{}, false, err
		}
		a.Entries = append(a.Entries, Entry{
			InboxID: webhook.InboxID(text(row, business.AttrInbox)), Run: number(row, business.AttrRun),
			Type:   webhook.EventType(text(row, business.AttrType)),
			Amount: number(row, business.AttrAmount), Currency: text(row, business.AttrCurrency),
		})
	}
	return a, true, nil
}

func number(row webhook.Item, name string) int64 {
	n, _ := row[name].(int64)
	return n
}

func text(row webhook.Item, name string) string {
	s, _ := row[name].(string)
	return s
}
