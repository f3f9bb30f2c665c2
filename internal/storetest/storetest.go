// Package storetest is the one suite that every place which keeps the protocol's
// rows must pass: the embedded DynamoDB, DynamoDB Local, and the service itself.
// It states what each write does and refuses, as whole rows. It measures nothing
// and injects no faults; those are the stages' own tests.
package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const keep = 400 * 24 * time.Hour

// Row returns an accepted event's row as ingress makes it, the n-th of its name.
func Row(name string, n int) webhook.Inbox {
	event := webhook.EventID(fmt.Sprintf("evt_%s_%d", name, n))
	digest := webhook.DigestOf([]byte(event))
	return webhook.Inbox{
		ID: webhook.DeriveInboxID("demo", "stripe", event), Provider: "stripe", Endpoint: "demo", Tenant: "acme",
		EventID: event, EventType: "payment_intent.succeeded", ObjectID: "pi_1", ObjectVersion: "7",
		ProviderCreatedAt: now.Add(-time.Minute), ReceivedAt: now, BodyID: webhook.DeriveBodyID("demo", digest),
		BodyExpiresAt: now.Add(30 * 24 * time.Hour), Digest: digest, MatchedVersion: "v1",
		Status: webhook.Received, NextAttemptAt: now,
	}
}

func promise(r webhook.Inbox) *webhook.Outbox {
	o := webhook.NewOutbox(r, r.ReceivedAt, r.ReceivedAt)
	return &o
}

// suite is one open store.
type suite struct {
	*dynamo.Store
}

func (s suite) accept(t *testing.T, r webhook.Inbox) {
	t.Helper()
	existing, err := s.Accept(t.Context(), r, promise(r))
	if err != nil || existing != nil {
		t.Fatalf("accept: existing %v, error %v", existing, err)
	}
}

// claim takes a row and returns it as claimed.
func (s suite) claim(t *testing.T, id webhook.InboxID, claim webhook.ClaimID, at time.Time) webhook.Inbox {
	t.Helper()
	row, ok, err := s.Change(t.Context(), webhook.Claim(id, claim, at, time.Minute, 5))
	if err != nil || !ok {
		t.Fatalf("claim: ok %v, error %v", ok, err)
	}
	return *row
}

func (s suite) wantRow(t *testing.T, want webhook.Inbox) {
	t.Helper()
	got, found, err := s.Inbox(t.Context(), want.ID)
	if err != nil || !found {
		t.Fatalf("read: found %v, error %v", found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inbox row (-want +got):\n%s", diff)
	}
}

// wantPromise compares the outbox row; nil means that there is none.
func (s suite) wantPromise(t *testing.T, id webhook.OutboxID, want *webhook.Outbox) {
	t.Helper()
	got, found, err := s.Outbox(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		got = webhook.Outbox{}
	}
	if want == nil {
		want = &webhook.Outbox{}
	}
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("outbox row (-want +got):\n%s", diff)
	}
}

// Run runs the suite on a store whose tables are there. Tests share the tables
// and use their own keys.
func Run(t *testing.T, store *dynamo.Store) {
	s := suite{store}
	t.Run("D3 D4: an event is accepted once, with its promise", s.acceptOnce)
	t.Run("A3: a repeat is answered with the row that was there", s.acceptAgain)
	t.Run("T3: of concurrent copies exactly one is accepted", s.acceptConcurrently)
	t.Run("PROTOCOL 1: a held row has no promise", s.acceptHeld)
	t.Run("guards and changes mean in storage what they mean in words", s.changesAgree)
	t.Run("PROTOCOL 3: a refused change returns the row as it stands", s.changeRefused)
	t.Run("W2: completing writes row, mark and business together", s.complete)
	t.Run("PROTOCOL 4: each refusal has its own verdict, in order", s.verdicts)
	t.Run("W2: a lost reply of complete is recognised", s.completeTwice)
	t.Run("O4: an event before its turn is parked at its slot", s.park)
	t.Run("PROTOCOL 7: parking tells apart what keeps it from its slot", s.parkVerdicts)
	t.Run("O4: a step of a sequence lets the next event go on", s.unpark)
	t.Run("PROTOCOL 7: whatever takes a row out of PARKED clears its slot", s.leaveSlot)
	t.Run("O3: tickets rise", s.tickets)
	t.Run("W4: a postponed promise is published again at its time", s.postpone)
	t.Run("X1: an effect is promised with its event, and remembers how far it was told", s.effects)
	t.Run("X8: a delivery is made once", s.createDelivery)
	t.Run("X8: of rivals one begins an attempt", s.attemptOnce)
	t.Run("X2: attempts are kept in order, and a late acceptance is a fact", s.attempts)
	t.Run("X2: an attempt that ends late is kept, although another has ended alike", s.lateRefusal)
	t.Run("X2: an acceptance is of an attempt that was begun", s.acceptance)
	t.Run("X6: a lost reply of an end is recognised, and the dead are listed", s.endTwice)
	t.Run("X1: a delivery is its own promise", s.wakeDelivery)
	t.Run("X6: a replay is a delivery of its own, linked to the first", s.replayDelivery)
	t.Run("X4: subscriptions change only under their revision", s.subscriptions)
	t.Run("all of a tenant's many subscriptions are listed", s.manySubscriptions)
	t.Run("W4: retry and fail move the promise with the row", s.retryAndFail)
	t.Run("D5: marks touch only the generation that was published", s.marks)
	t.Run("PROTOCOL 8: deletes touch only lives up to theirs", s.deletes)
	t.Run("the due index holds far rows only", s.dueIndex)
	t.Run("a scan finds every row whose wake time has come", s.scan)
	t.Run("endpoints change only under their revision", s.endpoints)
	t.Run("a lease has one owner", s.lease)
	t.Run("V1: a limit's row is charged by all and refilled by one", s.tokens)
	t.Run("V1: rivals lose no charge to each other", s.tokensBesideRivals)
	t.Run("A6: a back-fill's row changes under its revision, and asking is beside it", s.backfill)
	t.Run("business values come back as they were", s.values)
	t.Run("R3: an operator's acts commit with their record, and only on what was seen", s.operatorActs)
	t.Run("R3: a far promise is brought near, in its generation", s.bringNear)
	t.Run("R3: acts are found by their subject and their job", s.subjects)
	t.Run("R3: jobs change only under their revision", s.jobs)
	t.Run("R3: an applied row is opened for its next run, once", s.reprocess)
	t.Run("D6: an erased row keeps its identity, is listed, and is not opened again", s.erase)
	t.Run("D6: a legal hold takes the row's expiry away until it ends", s.legalHold)
}

func (s suite) acceptOnce(t *testing.T) {
	row := Row("once", 1)
	s.accept(t, row)
	s.wantRow(t, row)
	s.wantPromise(t, promise(row).ID, &webhook.Outbox{
		ID: promise(row).ID, InboxID: row.ID, Endpoint: row.Endpoint, Topic: webhook.TopicProcess, CreatedAt: now,
		Gen: 0, DueAt: now, WakeAt: now.Add(time.Minute),
	})
}

func (s suite) acceptAgain(t *testing.T) {
	row := Row("again", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	second := row
	second.ReceivedAt, second.MatchedVersion = now.Add(time.Hour), "v2"
	existing, err := s.Accept(t.Context(), second, promise(second))
	if err != nil || existing == nil {
		t.Fatalf("existing %v, error %v", existing, err)
	}
	if diff := cmp.Diff(claimed, *existing); diff != "" {
		t.Errorf("existing row (-want +got):\n%s", diff)
	}
	s.wantRow(t, claimed)
	s.wantPromise(t, promise(row).ID, promise(row))
}

func (s suite) acceptConcurrently(t *testing.T) {
	const copies = 100
	row := Row("crowd", 1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	first, duplicates, unknown := 0, 0, 0
	for range copies {
		wg.Go(func() {
			existing, err := s.Accept(context.WithoutCancel(t.Context()), row, promise(row))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				unknown++
			case existing == nil:
				first++
			default:
				duplicates++
			}
		})
	}
	wg.Wait()
	if first != 1 || duplicates != copies-1 || unknown != 0 {
		t.Errorf("accepted %d, duplicate %d, unknown %d of %d", first, duplicates, unknown, copies)
	}
	s.wantRow(t, row)
}

func (s suite) acceptHeld(t *testing.T) {
	row := Row("held", 1)
	row.Status, row.ConflictWith = webhook.Held, "in_other"
	existing, err := s.Accept(t.Context(), row, nil)
	if err != nil || existing != nil {
		t.Fatalf("existing %v, error %v", existing, err)
	}
	s.wantRow(t, row)
	s.wantPromise(t, webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0), nil)
}

// changesAgree drives random rows through random changes, and compares what the
// store does with what the words say.
func (s suite) changesAgree(t *testing.T) {
	const rounds = 300
	seed := uint64(20260301)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's dice
	for n := range rounds {
		row := randomRow(random, n)
		existing, err := s.Accept(t.Context(), row, nil)
		if err != nil || existing != nil {
			t.Fatalf("seed %d round %d: accept: %v, %v", seed, n, existing, err)
		}
		change := randomChange(random, row)
		want, allowed := row, change.Guard.Allows(row)
		if allowed {
			want = change.Apply(row)
		}
		got, ok, err := s.Change(t.Context(), change)
		if err != nil || ok != allowed {
			t.Fatalf("seed %d round %d: %s: written %v, want %v, error %v\nrow %+v\nguard %+v", seed, n, change.Transition, ok, allowed, err, row, change.Guard)
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Fatalf("seed %d round %d: %s (-want +got):\n%s", seed, n, change.Transition, diff)
		}
	}
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func randomRow(r *rand.Rand, n int) webhook.Inbox {
	row := Row("random", n)
	row.Status = pick(r, webhook.Statuses()...)
	row.Fence = webhook.Fence(r.IntN(3))
	row.AttemptCount = r.IntN(4)
	row.BodyExpiresAt = now.Add(time.Duration(r.IntN(3)) * 24 * time.Hour)
	if row.Status.Terminal() {
		row.ProcessedAt, row.ExpiresAt = now, now.Add(keep)
		switch r.IntN(4) {
		case 0:
			row.ErasedAt = now
		case 1:
			row.LegalHold, row.ExpiresAt = true, time.Time{}
		}
	}
	row.NextAttemptAt = now.Add(time.Duration(r.IntN(5)-2) * 5 * time.Second)
	if row.Status == webhook.Processing {
		row.ClaimID, row.LeaseUntil = "rival", now.Add(time.Duration(r.IntN(5)-2)*time.Second)
	}
	return row
}

func randomChange(r *rand.Rand, row webhook.Inbox) webhook.Change {
	seen := row // what the decision is made on may be outdated
	seen.Fence = webhook.Fence(r.IntN(3))
	seen.Status, seen.ClaimID, seen.LeaseUntil = webhook.Processing, "rival", now.Add(-time.Second)
	return pick(r,
		webhook.Claim(row.ID, "mine", now, time.Minute, 1+r.IntN(4)),
		seen.Complete(webhook.Stale, now, keep),
		seen.Retry(now.Add(time.Minute), "reason", r.IntN(2) == 0),
		seen.Fail(now, "reason", keep),
		seen.FreeLease(now, now.Add(time.Minute)),
		seen.FailLease(now, keep),
		seen.Hold("reason"),
		seen.Park(webhook.Slot{Sequence: "sq_1", Number: 2}, now.Add(time.Hour)),
		in(seen, webhook.Failed).Replay(now),
		in(seen, webhook.Held).Release(now),
		in(seen, webhook.Processed).Reprocess(now),
		in(seen, pick(r, webhook.Processed, webhook.Failed)).Erase(now.Add(time.Minute)),
		in(seen, pick(r, webhook.Processed, webhook.Failed)).HoldByLaw(),
		heldByLaw(in(seen, pick(r, webhook.Processed, webhook.Failed))).LetGo(now, 2*keep),
	)
}

func heldByLaw(row webhook.Inbox) webhook.Inbox {
	row.LegalHold = true
	return row
}

func in(row webhook.Inbox, status webhook.Status) webhook.Inbox {
	row.Status = status
	return row
}

func (s suite) changeRefused(t *testing.T) {
	row := Row("refused", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "first", now)
	got, ok, err := s.Change(t.Context(), webhook.Claim(row.ID, "second", now, time.Minute, 5))
	if err != nil || ok {
		t.Fatalf("ok %v, error %v", ok, err)
	}
	if diff := cmp.Diff(&claimed, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	missing, ok, err := s.Change(t.Context(), webhook.Claim("in_missing", "c", now, time.Minute, 5))
	if err != nil || ok || missing != nil {
		t.Errorf("a missing row: %v, %v, %v; want nothing", missing, ok, err)
	}
}

func key(name string) webhook.Key { return webhook.Key{PK: "t#" + name, SK: "s"} }

func (s suite) complete(t *testing.T) {
	row := Row("complete", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	change := claimed.Complete(webhook.Applied, now, keep)
	mark := &webhook.Mark{InboxID: row.ID, At: now, ExpiresAt: change.ExpiresAt.Add(webhook.MarkOutlives)}
	verdict, err := s.Complete(t.Context(), webhook.Completion{Change: change, Claim: "c", Mark: mark, Actions: []webhook.Action{
		webhook.PutItem(key("complete-entry"), webhook.Item{"amount": int64(500)}),
		webhook.UpdateItem(key("complete-balance"), webhook.Item{"currency": "EUR"}).Adding("balance", 500).Adding("entries", 1),
	}})
	if err != nil || verdict != webhook.Committed {
		t.Fatalf("verdict %s, error %v", verdict, err)
	}
	s.wantRow(t, change.Apply(claimed))
	s.wantItem(t, key("complete-entry"), webhook.Item{"amount": int64(500)})
	s.wantItem(t, key("complete-balance"), webhook.Item{"currency": "EUR", "balance": int64(500), "entries": int64(1)})
	if marked, err := s.Marked(t.Context(), row.ID, 0); err != nil || !marked {
		t.Errorf("marked %v, error %v", marked, err)
	}
}

func (s suite) wantItem(t *testing.T, k webhook.Key, want webhook.Item) {
	t.Helper()
	got, _, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	delete(got, "pk")
	delete(got, "sk")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("item %v (-want +got):\n%s", k, diff)
	}
}

func (s suite) verdicts(t *testing.T) {
	held := func(name string) webhook.Action {
		return webhook.UpdateItem(key(name), webhook.Item{"v": int64(1)})
	}
	if verdict := s.try(t, "verdict-setup", nil, held("taken")); verdict != webhook.Committed {
		t.Fatalf("setup: %s", verdict)
	}
	newer := held("taken").If(webhook.Newer, webhook.Condition{Attribute: "v", Relation: webhook.ElseLess, Value: int64(1)})
	unchanged := webhook.PutItem(webhook.Key{PK: "t#taken", SK: "s"}, webhook.Item{}).If(webhook.Unchanged, webhook.IfAbsent())
	domain := webhook.CheckItem(key("nothing")).If(webhook.Domain, webhook.Condition{Attribute: "v", Relation: webhook.Equal, Value: int64(9)})
	domainTaken := webhook.CheckItem(key("taken")).If(webhook.Domain, webhook.Condition{Attribute: "v", Relation: webhook.Less, Value: int64(1)})

	tests := []struct {
		name    string
		arrange func(t *testing.T, row webhook.Inbox)
		actions []webhook.Action
		want    webhook.Verdict
	}{
		{"newer", nil, []webhook.Action{newer}, webhook.NotNewer},
		{"unchanged", nil, []webhook.Action{unchanged}, webhook.RivalWrote},
		{"domain", nil, []webhook.Action{domain}, webhook.RuleRefused},
		{"newer before domain", nil, []webhook.Action{domain, newer}, webhook.NotNewer},
		{"unchanged before domain", nil, []webhook.Action{domain, unchanged}, webhook.RivalWrote},
		{"domain on a row that is there", nil, []webhook.Action{domainTaken}, webhook.RuleRefused},
		{"the claim before everything", s.loseClaim, []webhook.Action{newer}, webhook.ClaimLost},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.try(t, fmt.Sprintf("verdict-%d", i), tt.arrange, tt.actions...); got != tt.want {
				t.Errorf("verdict = %s, want %s", got, tt.want)
			}
		})
	}
	s.wantItem(t, key("taken"), webhook.Item{"v": int64(1)})
}

// loseClaim has a row's lease end and the row put back, as the reconciler does.
func (s suite) loseClaim(t *testing.T, row webhook.Inbox) {
	t.Helper()
	claimed, _, err := s.Inbox(t.Context(), row.ID)
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(time.Hour)
	if _, ok, err := s.Change(t.Context(), claimed.FreeLease(later, later)); err != nil || !ok {
		t.Fatalf("free: %v, %v", ok, err)
	}
}

// try completes a fresh row with actions, after something happened to its claim.
func (s suite) try(t *testing.T, name string, arrange func(*testing.T, webhook.Inbox), actions ...webhook.Action) webhook.Verdict {
	t.Helper()
	row := Row(name, 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	if arrange != nil {
		arrange(t, row)
	}
	verdict, err := s.Complete(t.Context(), webhook.Completion{Change: claimed.Complete(webhook.Applied, now, keep), Claim: "c", Mark: &webhook.Mark{InboxID: row.ID, At: now}, Actions: actions})
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

func (s suite) completeTwice(t *testing.T) {
	row := Row("twice", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	change := claimed.Complete(webhook.Applied, now, keep)
	mark := &webhook.Mark{InboxID: row.ID, At: now}
	credit := webhook.UpdateItem(key("twice"), nil).Adding("balance", 1)
	for range 2 { // the second is the try after a reply that never came
		if verdict, err := s.Complete(t.Context(), webhook.Completion{Change: change, Claim: "c", Mark: mark, Actions: []webhook.Action{credit}}); err != nil || verdict != webhook.Committed {
			t.Fatalf("verdict %s, error %v", verdict, err)
		}
	}
	if verdict, err := s.Complete(t.Context(), webhook.Completion{Change: change, Claim: "other", Mark: mark, Actions: []webhook.Action{credit}}); err != nil || verdict != webhook.ClaimLost {
		t.Errorf("another worker: verdict %s, error %v", verdict, err)
	}
	s.wantItem(t, key("twice"), webhook.Item{"balance": int64(1)})

	// A row that lost its PROCESSED, as after a restore, meets the mark.
	again := Row("twice", 2)
	s.accept(t, again)
	claimed = s.claim(t, again.ID, "c", now)
	verdict, err := s.Complete(t.Context(), webhook.Completion{Change: claimed.Complete(webhook.Applied, now, keep), Claim: "c", Mark: mark, Actions: []webhook.Action{credit}})
	if err != nil || verdict != webhook.MarkExists {
		t.Errorf("with the mark there: verdict %s, error %v", verdict, err)
	}
	s.wantItem(t, key("twice"), webhook.Item{"balance": int64(1)})
}

func (s suite) retryAndFail(t *testing.T) {
	row := Row("retry", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	next := now.Add(time.Hour)
	change := claimed.Retry(next, "their_fault", false)
	retried := change.Apply(claimed)
	again := webhook.NewOutbox(retried, next, now)
	if ok, err := s.Retry(t.Context(), change, again); err != nil || !ok {
		t.Fatalf("retry: %v, %v", ok, err)
	}
	s.wantRow(t, retried)
	s.wantPromise(t, again.ID, &again)
	if ok, err := s.Retry(t.Context(), change, again); err != nil || ok {
		t.Errorf("an outdated retry: %v, %v; want false", ok, err)
	}

	fail := retried.Fail(now, "schema", keep)
	if ok, err := s.Fail(t.Context(), fail, again.ID); err != nil || !ok {
		t.Fatalf("fail: %v, %v", ok, err)
	}
	s.wantRow(t, fail.Apply(retried))
	s.wantPromise(t, again.ID, nil)
	if ok, err := s.Fail(t.Context(), fail, again.ID); err != nil || ok {
		t.Errorf("an outdated fail: %v, %v; want false", ok, err)
	}
}

func (s suite) marks(t *testing.T) {
	row := Row("marks", 1)
	s.accept(t, row)
	o := *promise(row)
	published := o.Publish(now)
	if ok, err := s.MarkPublished(t.Context(), published); err != nil || !ok {
		t.Fatalf("mark: %v, %v", ok, err)
	}
	want := o
	want.PublishedAt, want.WakeAt, want.Wakes = now, published.WakeAt, 1
	s.wantPromise(t, o.ID, &want)
	if ok, err := s.MarkPublished(t.Context(), published); err != nil || ok {
		t.Errorf("a second mark by the relay: %v, %v; want false", ok, err)
	}

	// The reconciler's mark: by the wake time it saw.
	later := now.Add(6 * time.Minute)
	if ok, err := s.MarkPublished(t.Context(), o.Rewake(later)); err != nil || ok {
		t.Errorf("a rewake from an outdated read: %v, %v; want false", ok, err)
	}
	rewake := want.Rewake(later)
	if ok, err := s.MarkPublished(t.Context(), rewake); err != nil || !ok {
		t.Fatalf("rewake: %v, %v", ok, err)
	}
	want.PublishedAt, want.WakeAt, want.Wakes = later, rewake.WakeAt, 2
	s.wantPromise(t, o.ID, &want)

	s.marksOfItsOwnLife(t)
	// And a missing row is not raised by a mark.
	if ok, err := s.MarkPublished(t.Context(), webhook.Published{ID: "none", At: now, WakeAt: now}); err != nil || ok {
		t.Errorf("a mark of a missing row: %v, %v; want false", ok, err)
	}
	s.wantPromise(t, "none", nil)
	if ok, err := s.PushWake(t.Context(), want, now.Add(time.Hour)); err != nil || !ok {
		t.Fatalf("push: %v, %v", ok, err)
	}
	if ok, err := s.PushWake(t.Context(), want, now.Add(2*time.Hour)); err != nil || ok {
		t.Errorf("a push from an outdated read: %v, %v; want false", ok, err)
	}
	want.WakeAt = now.Add(time.Hour)
	s.wantPromise(t, o.ID, &want)
}

// marksOfItsOwnLife leaves a promise alone that was inserted anew since it was
// sent: it is another one, which nobody has sent yet.
func (s suite) marksOfItsOwnLife(t *testing.T) {
	row := Row("marks", 2)
	s.accept(t, row)
	unsent := *promise(row)
	older := unsent
	older.Gen--
	if ok, err := s.MarkPublished(t.Context(), older.Publish(now)); err != nil || ok {
		t.Errorf("a mark of another generation: %v, %v; want false", ok, err)
	}
	if ok, err := s.MarkPublished(t.Context(), older.Rewake(now)); err != nil || ok {
		t.Errorf("a rewake of another generation: %v, %v; want false", ok, err)
	}
	if ok, err := s.PushWake(t.Context(), older, now.Add(time.Hour)); err != nil || ok {
		t.Errorf("a push of another generation: %v, %v; want false", ok, err)
	}
	s.wantPromise(t, unsent.ID, &unsent)
}

func (s suite) deletes(t *testing.T) {
	row := Row("deletes", 1)
	row.Fence = 4
	s.accept(t, row)
	o := promise(row)
	if ok, err := s.DeleteOutbox(t.Context(), o.ID, 3); err != nil || ok {
		t.Errorf("a delete by an older life: %v, %v; want false", ok, err)
	}
	s.wantPromise(t, o.ID, o)
	if ok, err := s.DeleteOutbox(t.Context(), o.ID, 4); err != nil || !ok {
		t.Errorf("delete: %v, %v", ok, err)
	}
	s.wantPromise(t, o.ID, nil)
	if ok, err := s.DeleteOutbox(t.Context(), o.ID, 4); err != nil || ok {
		t.Errorf("a second delete: %v, %v; want false", ok, err)
	}

	orphan := Row("deletes", 2)
	s.accept(t, orphan)
	scanned := *promise(orphan)
	scanned.Gen = 9
	if ok, err := s.DeleteOrphan(t.Context(), scanned); err != nil || ok {
		t.Errorf("an orphan of another generation: %v, %v; want false", ok, err)
	}
	if ok, err := s.DeleteOrphan(t.Context(), *promise(orphan)); err != nil || !ok {
		t.Errorf("orphan: %v, %v", ok, err)
	}
}

func (s suite) dueIndex(t *testing.T) {
	row := Row("due", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	next := now.Add(2 * time.Hour)
	change := claimed.Retry(next, "x", false)
	o := webhook.NewOutbox(change.Apply(claimed), next, now)
	if ok, err := s.Retry(t.Context(), change, o); err != nil || !ok {
		t.Fatalf("retry: %v, %v", ok, err)
	}
	shard := webhook.ShardOf(string(o.ID))
	listed := func(by time.Time) bool {
		ids, err := s.DueOutbox(t.Context(), shard, by, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if id == o.ID {
				return true
			}
		}
		return false
	}
	if listed(next.Add(-time.Millisecond)) || !eventually(t, func() bool { return listed(next) }) {
		t.Error("the due index does not bring the row at its time")
	}
	if ok, err := s.MarkPublished(t.Context(), o.Publish(next)); err != nil || !ok {
		t.Fatalf("mark: %v, %v", ok, err)
	}
	if !eventually(t, func() bool { return !listed(next) }) {
		t.Error("a published row is still in the due index")
	}
}

// eventually asks again while an index has not followed its table yet.
func eventually(t *testing.T, holds func() bool) bool {
	t.Helper()
	for range 100 {
		if holds() {
			return true
		}
		if err := dynamo.Sleep(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	return false
}

func (s suite) scan(t *testing.T) {
	want := map[webhook.OutboxID]bool{}
	for n := range 25 {
		row := Row("scan", n)
		s.accept(t, row)
		want[promise(row).ID] = true
	}
	for segment := range 3 {
		from := ""
		for {
			page, err := s.ScanOutbox(t.Context(), segment, 3, now.Add(time.Minute), from, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Rows {
				delete(want, o.ID)
			}
			if from = page.Next; from == "" {
				break
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("%d rows were not found", len(want))
	}
	page, err := s.ScanOutbox(t.Context(), 0, 1, now.Add(-time.Hour), "", 1000)
	if err != nil || len(page.Rows) > 0 {
		t.Errorf("before their time: %d rows, error %v; want none", len(page.Rows), err)
	}
}

func (s suite) endpoints(t *testing.T) {
	e := webhook.Endpoint{
		ID: "shop", Provider: "stripe", Tenant: "acme", Scope: "shop", Secret: "x/endpoint/shop", Overlap: 72 * time.Hour,
		Types: []webhook.EventType{"a.b"}, Keys: []webhook.TrustedKey{{Version: "v1", AddedAt: now}}, CreatedAt: now,
		AllowFrom: webhook.AllowFrom{Provider: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}},
	}
	if ok, err := s.CreateEndpoint(t.Context(), e); err != nil || !ok {
		t.Fatalf("create: %v, %v", ok, err)
	}
	if ok, err := s.CreateEndpoint(t.Context(), e); err != nil || ok {
		t.Errorf("a second create: %v, %v; want false", ok, err)
	}
	got, found, err := s.Endpoint(t.Context(), "shop")
	if err != nil || !found {
		t.Fatalf("read: %v, %v", found, err)
	}
	e.Revision = 1
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("endpoint (-want +got):\n%s", diff)
	}
	matched, _ := got.WithFirstMatch("v1", now)
	if ok, err := s.UpdateEndpoint(t.Context(), matched); err != nil || !ok {
		t.Fatalf("update: %v, %v", ok, err)
	}
	if ok, err := s.UpdateEndpoint(t.Context(), got); err != nil || ok {
		t.Errorf("an update from an outdated read: %v, %v; want false", ok, err)
	}
	if _, found, err := s.Endpoint(t.Context(), "nowhere"); err != nil || found {
		t.Errorf("an unknown endpoint: %v, %v", found, err)
	}
	ids, err := s.EndpointIDs(t.Context())
	if diff := cmp.Diff([]webhook.EndpointID{"shop"}, ids); err != nil || diff != "" {
		t.Errorf("ids (-want +got):\n%s%v", diff, err)
	}
}

func (s suite) lease(t *testing.T) {
	until := now.Add(time.Minute)
	if _, ok, err := s.Lease(t.Context(), "l", "one", now, until); err != nil || !ok {
		t.Fatalf("a free lease: %v, %v", ok, err)
	}
	if _, ok, err := s.Lease(t.Context(), "l", "two", now, until); err != nil || ok {
		t.Errorf("a taken lease: %v, %v; want false", ok, err)
	}
	if _, ok, err := s.Lease(t.Context(), "l", "one", now, until); err != nil || !ok {
		t.Errorf("the owner's own: %v, %v", ok, err)
	}
	if _, ok, err := s.Lease(t.Context(), "l", "two", until.Add(1), until.Add(time.Minute)); err != nil || ok {
		t.Errorf("at its last moment: %v, %v; want false", ok, err)
	}
	if _, ok, err := s.Lease(t.Context(), "l", "two", until.Add(time.Millisecond), until.Add(time.Minute)); err != nil || !ok {
		t.Errorf("one that is over: %v, %v", ok, err)
	}
	if err := s.Release(t.Context(), "l", "one", "stolen"); err != nil {
		t.Errorf("releasing what was taken over: %v", err)
	}
	if _, ok, err := s.Lease(t.Context(), "l", "three", until.Add(time.Millisecond), until.Add(time.Minute)); err != nil || ok {
		t.Errorf("after a release by its former owner: %v, %v; want false", ok, err)
	}
	if err := s.Release(t.Context(), "l", "two", "cursor"); err != nil {
		t.Fatal(err)
	}
	state, ok, err := s.Lease(t.Context(), "l", "three", now, until)
	if err != nil || !ok || state != "cursor" {
		t.Errorf("after a release: state %q, %v, %v", state, ok, err)
	}
}

func (s suite) values(t *testing.T) {
	item := webhook.Item{
		"text": "ü<>&", "empty": "", "number": int64(-9007199254740993), "yes": true, "bytes": []byte{0, 255},
	}
	if verdict := s.try(t, "values", nil, webhook.PutItem(key("values"), item)); verdict != webhook.Committed {
		t.Fatalf("verdict %s", verdict)
	}
	s.wantItem(t, key("values"), item)
	drop := webhook.UpdateItem(key("values"), webhook.Item{"yes": false})
	drop.Drop = []string{"text", "empty"}
	if verdict := s.try(t, "values-2", nil, drop); verdict != webhook.Committed {
		t.Fatalf("verdict %s", verdict)
	}
	s.wantItem(t, key("values"), webhook.Item{"number": int64(-9007199254740993), "yes": false, "bytes": []byte{0, 255}})
}

func (s suite) operatorActs(t *testing.T) {
	row := Row("operator", 1)
	s.accept(t, row)
	o := promise(row)
	act := func(name string) webhook.Act {
		return webhook.Act{ID: name, At: now, Name: name, Subject: "event " + string(row.ID), Who: "ada", Why: "a test"}
	}
	wantWritten := func(name string, want bool) func(bool, error) {
		return func(ok bool, err error) {
			t.Helper()
			if err != nil || ok != want {
				t.Fatalf("%s: %v, %v; want %v", name, ok, err, want)
			}
		}
	}
	reopen := func(c webhook.Change, after webhook.Inbox, name string, want webhook.Verdict) {
		t.Helper()
		if got, err := s.Reopen(t.Context(), c, after.Run, webhook.NewOutbox(after, now, now), act(name)); err != nil || got != want {
			t.Fatalf("%s: %s, %v; want %s", name, got, err, want)
		}
	}

	hold := row.Hold("held_by_operator")
	held := hold.Apply(row)
	watch := webhook.NewHeldOutbox(held, now)
	wantWritten("hold", true)(s.Hold(t.Context(), hold, watch, act("hold")))
	s.wantRow(t, held)
	s.wantPromise(t, o.ID, &watch)
	wantWritten("hold again", false)(s.Hold(t.Context(), hold, watch, act("hold again")))

	release := held.Release(now)
	open := release.Apply(held)
	reopen(release, open, "release", webhook.Committed)
	s.wantRow(t, open)
	again := webhook.NewOutbox(open, now, now)
	s.wantPromise(t, o.ID, &again)
	reopen(release, open, "release again", webhook.ClaimLost)

	fail := open.Fail(now, "failed_by_operator", keep)
	wantWritten("fail", true)(s.FailBy(t.Context(), fail, o.ID, act("fail")))
	s.wantPromise(t, o.ID, nil)
	failed := fail.Apply(open)
	s.wantRow(t, failed)
	replay := failed.Replay(now)
	reopen(replay, replay.Apply(failed), "replay", webhook.Committed)
	s.wantRow(t, replay.Apply(failed))

	// An applied run is not opened again.
	applied := Row("operator", 2)
	s.accept(t, applied)
	claimed := s.claim(t, applied.ID, "c", now)
	verdict, err := s.Complete(t.Context(), webhook.Completion{Change: claimed.Complete(webhook.Applied, now, keep), Claim: "c", Mark: &webhook.Mark{InboxID: applied.ID, At: now}})
	if err != nil || verdict != webhook.Committed {
		t.Fatalf("setup: %s, %v", verdict, err)
	}
	pretend := claimed.Complete(webhook.Applied, now, keep).Apply(claimed)
	forced := webhook.Change{ID: applied.ID, Guard: webhook.Guard{From: []webhook.Status{webhook.Processed}, Fence: pretend.Fence}, To: webhook.Received, NextAttemptAt: now, Reopen: true}
	reopen(forced, forced.Apply(pretend), "replay of an applied event", webhook.MarkExists)
	s.wantRow(t, pretend)

	var names []string
	for a, err := range s.Acts(t.Context(), now.Add(-time.Minute), now.Add(time.Minute)) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(a.Subject, string(row.ID)) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"fail", "hold", "release", "replay"}, names); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// LargestRow returns a row in which every column is as long as it may be.
func LargestRow() webhook.Inbox {
	long := func(n int) string { return strings.Repeat("x", n) }
	row := Row("large", 1)
	row.Provider, row.Endpoint, row.Tenant = "standard-webhooks", webhook.EndpointID(long(webhook.EndpointIDBytesMax)), webhook.Tenant(long(webhook.TenantBytesMax))
	row.EventID, row.EventType = webhook.EventID(long(webhook.EventIDBytesMax)), webhook.EventType(long(webhook.EventTypeBytesMax))
	row.ObjectID, row.ObjectVersion = long(webhook.ObjectIDBytesMax), long(webhook.ObjectVersionBytesMax)
	row.MatchedVersion = webhook.KeyVersion(long(64))
	row.SameBodyAs, row.Uncovered, row.Unwanted = row.ID, true, true
	row.Status, row.Outcome, row.Fence, row.AttemptCount, row.Run = webhook.Processed, webhook.AlreadyApplied, 1_000_000, 100, 10
	row.LeaseUntil, row.ClaimID, row.LastError = now, webhook.ClaimID(long(26)), long(webhook.LastErrorBytesMax)
	row.ProcessedAt, row.ExpiresAt, row.ErasedAt = now, now, now
	return row
}
