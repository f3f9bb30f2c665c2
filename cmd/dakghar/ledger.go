package main

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) ledgerCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:     "ledger",
		Short:   "See what applied events came to, by object",
		Example: `  dakghar ledger show --local --endpoint demo --object pi_123`,
	}, a.ledgerShow()))
}

func (a *app) ledgerShow() *cobra.Command {
	var endpoint, object string
	c := a.onOperator(&cobra.Command{
		Use:   "show",
		Short: "Show an object's balance and its entries",
		Long: `Show the ledger of one object: its balance by currency, in minor units, how many
entries were ever added, and the entries. An event that was applied twice would
show: it raises the count and the balance twice and has one entry.`,
		Example: `  dakghar ledger show --local --endpoint demo --object pi_123 --json`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		accounts, err := op.Ledger(ctx, webhook.EndpointID(endpoint), object)
		if err != nil {
			return err
		}
		for _, account := range accounts {
			if err := a.showAccount(account); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flags().StringVar(&endpoint, "endpoint", "", "the endpoint's id")
	c.Flags().StringVar(&object, "object", "", "the object's id, as inbox list shows it")
	return required(c, "endpoint", "object")
}

func (a *app) showAccount(account operator.Account) error {
	if a.json {
		return a.printJSON(accountJSON(account))
	}
	a.printf("%s %s: %d applied, %s\n", account.ObjectType, account.ObjectID, account.Applied, count(len(account.Entries), "entry"))
	rows := [][]string{}
	for _, currency := range slices.Sorted(maps.Keys(account.Balances)) {
		rows = append(rows, []string{"  balance " + currency, strconv.FormatInt(account.Balances[currency], 10)})
	}
	if err := a.table("", rows); err != nil {
		return err
	}
	rows = rows[:0]
	for _, e := range account.Entries {
		rows = append(rows, []string{"  " + string(e.InboxID), strconv.FormatInt(e.Run, 10), string(e.Type), strconv.FormatInt(e.Amount, 10), e.Currency})
	}
	return a.table("", append([][]string{{"  INBOX_ID", "RUN", "TYPE", "AMOUNT", "CURRENCY"}}, rows...))
}

// accountView is an account in JSON; amounts are minor units.
type accountView struct {
	ObjectType string           `json:"object_type"`
	ObjectID   string           `json:"object_id"`
	Applied    int64            `json:"applied"`
	Balances   map[string]int64 `json:"balances"`
	Entries    []entryView      `json:"entries"`
}

type entryView struct {
	InboxID   string `json:"inbox_id"`
	Run       int64  `json:"run"`
	EventType string `json:"event_type"`
	Amount    int64  `json:"amount"`
	Currency  word   `json:"currency"`
}

func accountJSON(account operator.Account) accountView {
	v := accountView{
		ObjectType: string(account.ObjectType), ObjectID: account.ObjectID, Applied: account.Applied,
		Balances: account.Balances, Entries: []entryView{},
	}
	for _, e := range account.Entries {
		v.Entries = append(v.Entries, entryView{string(e.InboxID), e.Run, string(e.Type), e.Amount, word(e.Currency)})
	}
	return v
}
