package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/business"
	"dakghar/internal/webhook"
)

// rows reads a whole table from outside.
func (w *World) rows(table string) []map[string]types.AttributeValue {
	w.T.Helper()
	var all []map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(w.db, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.T.Context())
		if err != nil {
			w.T.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

func text(item map[string]types.AttributeValue, name string) string {
	if v, ok := item[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func number(item map[string]types.AttributeValue, name string) int64 {
	v, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Inbox returns every inbox row.
func (w *World) Inbox() []webhook.Inbox {
	w.T.Helper()
	var all []webhook.Inbox
	for _, item := range w.rows(w.tables.Inbox) {
		row, found, err := w.Outside.Inbox(w.T.Context(), webhook.InboxID(text(item, "id")))
		if err != nil || !found {
			w.T.Fatalf("inbox row: %v, %v", found, err)
		}
		all = append(all, row)
	}
	return all
}

// Outbox returns every outbox row.
func (w *World) Outbox() []webhook.Outbox {
	w.T.Helper()
	page, err := w.Outside.ScanOutbox(w.T.Context(), 0, 1, w.Now().Add(100*365*24*time.Hour), "", 100_000)
	if err != nil {
		w.T.Fatal(err)
	}
	return page.Rows
}

// Row returns one inbox row.
func (w *World) Row(id webhook.InboxID) webhook.Inbox {
	w.T.Helper()
	row, found, err := w.Outside.Inbox(w.T.Context(), id)
	if err != nil || !found {
		w.T.Fatalf("row %s: found %v, error %v", id, found, err)
	}
	return row
}

// Ledger counts the ledger's entries by the event that made them, and returns
// the balance rows by object. It reads the additive rows alone, never the marks.
func (w *World) Ledger() (entries map[webhook.InboxID]int, balances map[string]map[string]int64) {
	w.T.Helper()
	entries, balances = map[webhook.InboxID]int{}, map[string]map[string]int64{}
	for _, item := range w.rows(w.tables.Business) {
		sk := text(item, "sk")
		switch {
		case strings.HasPrefix(sk, "entry#"):
			entries[webhook.InboxID(strings.Split(sk, "#")[1])]++
		case sk == "balance", strings.HasPrefix(sk, "balance#"): // an account's is spread over rows
			sums := balances[text(item, "pk")]
			if sums == nil {
				sums = map[string]int64{}
				balances[text(item, "pk")] = sums
			}
			for name := range item {
				if name != "pk" && name != "sk" {
					sums[name] += number(item, name)
				}
			}
		}
	}
	return entries, balances
}

// Check returns what is wrong, seen from outside, in a system at rest. It is the
// pass condition: one durable row and one business mutation per logical event,
// nothing accepted lost, nothing left open.
func (w *World) Check() []string {
	w.T.Helper()
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	byEvent := map[string]int{}
	rows := map[webhook.InboxID]webhook.Inbox{}
	for _, r := range w.Inbox() {
		rows[r.ID] = r
		if r.ConflictWith == "" {
			byEvent[string(r.Endpoint)+"|"+string(r.EventID)]++
		}
		if !r.Status.Terminal() && r.Status != webhook.Held {
			complain("%s is %s, and nobody comes for it", r.ID, r.Status)
		}
	}
	for event, n := range byEvent {
		if n != 1 {
			complain("event %s has %d rows", event, n)
		}
	}
	for id := range w.accepted {
		if _, ok := rows[id]; !ok {
			complain("%s was acknowledged and has no row", id)
		}
	}
	entries, balances := w.Ledger()
	var counted int64
	for _, sums := range balances {
		counted += sums[business.AttrEntries]
	}
	if counted != int64(len(entries)) {
		complain("the balances count %d entries, and there are %d: something was applied twice", counted, len(entries))
	}
	for id, r := range rows {
		want := 0
		if r.Status == webhook.Processed && r.Outcome == webhook.Applied {
			want = 1
		}
		if entries[id] != want {
			complain("%s is %s %s and has %d ledger entries, want %d", id, r.Status, r.Outcome, entries[id], want)
		}
		delete(entries, id)
	}
	for id := range entries {
		complain("ledger entry of %s, which has no row", id)
	}
	for _, o := range w.Outbox() {
		if r, ok := rows[o.InboxID]; !ok || r.Status != webhook.Held {
			complain("promise %s is left", o.ID)
		}
	}
	wrong = append(wrong, w.checkDeliveries()...)
	for _, d := range w.pending {
		complain("a delivery to %s was never acknowledged: %v", d.Endpoint.ID, d.Answers)
	}
	return wrong
}

// Projected returns an attribute of the projection of the object with an id.
func (w *World) Projected(objectID, attribute string) any {
	w.T.Helper()
	for _, item := range w.rows(w.tables.Business) {
		if text(item, "sk") != "projection" || !strings.HasSuffix(text(item, "pk"), "#"+objectID) {
			continue
		}
		row, _, err := w.Outside.Get(w.T.Context(), webhook.Key{PK: text(item, "pk"), SK: "projection"})
		if err != nil {
			w.T.Fatal(err)
		}
		return row[attribute]
	}
	return nil
}

// Stored counts everything that ingress can store: rows of inbox, outbox and
// bodies. The wrapped data keys, which hold nothing of a request, do not count.
func (w *World) Stored() int {
	w.T.Helper()
	n := len(w.rows(w.tables.Inbox)) + len(w.rows(w.tables.Outbox))
	for _, item := range w.rows(w.bodyTable) {
		if !strings.HasPrefix(text(item, "id"), "key#") {
			n++
		}
	}
	return n
}

// BodyKept reports whether a body has its row.
func (w *World) BodyKept(digest webhook.Digest, e webhook.EndpointID) bool {
	w.T.Helper()
	for _, item := range w.rows(w.bodyTable) {
		if text(item, "id") == string(webhook.DeriveBodyID(e, digest)) {
			return true
		}
	}
	return false
}

// OpenBody returns the raw bytes of an event, as the processor would read them.
func (w *World) OpenBody(r webhook.Inbox) []byte {
	w.T.Helper()
	raw, err := w.bodies(w.config(), Options{}, w.Now).Open(w.T.Context(), r.BodyID, r.Tenant, r.Digest)
	if err != nil {
		w.T.Fatal(err)
	}
	return raw
}

// Write commits a business action by other hands.
func (w *World) Write(a webhook.Action) {
	w.T.Helper()
	w.commit(nil, a)
}

// WriteMark puts a processed mark by other hands.
func (w *World) WriteMark(m webhook.Mark) {
	w.T.Helper()
	w.commit(&m)
}

// commit completes a made-up event, which leaves with its row.
func (w *World) commit(mark *webhook.Mark, actions ...webhook.Action) {
	w.T.Helper()
	ctx := w.T.Context()
	row := webhook.Inbox{ID: webhook.InboxID("in_" + w.NewID()), Status: webhook.Received, NextAttemptAt: w.Now(), ReceivedAt: w.Now()}
	if _, err := w.Outside.Accept(ctx, row, nil); err != nil {
		w.T.Fatal(err)
	}
	claimed, ok, err := w.Outside.Change(ctx, webhook.Claim(row.ID, "outside", w.Now(), time.Minute, 1))
	if err != nil || !ok {
		w.T.Fatalf("claim: %v, %v", ok, err)
	}
	verdict, err := w.Outside.Complete(ctx, webhook.Completion{Change: claimed.Complete(webhook.Stale, w.Now(), time.Hour), Claim: "outside", Mark: mark, Actions: actions})
	if err != nil || verdict != webhook.Committed {
		w.T.Fatalf("commit: %s, %v", verdict, err)
	}
	w.Forget(row.ID)
}

// PutOdd puts a row into the outbox that is none, due for a look.
func (w *World) PutOdd(id string) {
	w.T.Helper()
	_, err := w.db.PutItem(w.T.Context(), &dynamodb.PutItemInput{TableName: &w.tables.Outbox, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: id}, "wa": &types.AttributeValueMemberN{Value: "1"},
	}})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Forget removes an inbox row by other hands, as a restore might.
func (w *World) Forget(id webhook.InboxID) {
	w.T.Helper()
	_, err := w.db.DeleteItem(w.T.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.tables.Inbox, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(id)}},
	})
	if err != nil {
		w.T.Fatal(err)
	}
}
