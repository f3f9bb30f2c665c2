package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/delivery"
	"dakghar/internal/devstack"
	"dakghar/internal/devstack/lambda"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/queue"
	"dakghar/internal/webhook"
)

// dead puts letters of several fates, and reports of the stream, into the world.
func dead(s *shell) {
	past := s.world.Clock.Add(-2 * time.Hour)
	for i, row := range []webhook.Inbox{
		{ID: "in_due", Status: webhook.Received, NextAttemptAt: past},
		{ID: "in_later", Status: webhook.Retry, NextAttemptAt: s.world.Clock.Add(time.Hour), LastError: "partner_503"},
		{ID: "in_failed", Status: webhook.Failed, LastError: "handler_panic", BodyExpiresAt: s.world.Clock.Add(72 * time.Hour)},
		{ID: "in_old", Status: webhook.Failed, LastError: "schema", BodyExpiresAt: s.world.Clock.Add(time.Hour)},
		{ID: "in_done", Status: webhook.Processed, Outcome: webhook.Applied},
		{ID: "in_held", Status: webhook.Held},
	} {
		row.Provider, row.Endpoint = "stripe", "demo"
		s.world.Rows[row.ID] = row
		if row.Status.Waiting() {
			p := webhook.NewOutbox(row, row.NextAttemptAt, past)
			s.world.Promises[p.ID] = p
		}
		s.world.EventLetters.Put(fmt.Sprintf("m-%d", i+1), fmt.Sprintf(`{"v":1,"outbox_id":"o","inbox_id":%q,"endpoint_id":"demo","topic":"process","gen":0}`, row.ID), past)
	}
	s.world.EventLetters.Put("m-7", "hello \x1b[2J", past)
	s.world.RelayLetters.Put("r-1", `{"requestContext":{"condition":"RetryAttemptsExhausted","approximateInvokeCount":21},"version":"1.0",
		"DDBStreamBatchInfo":{"shardId":"shardId-0001","startSequenceNumber":"100","endSequenceNumber":"102","approximateArrivalOfFirstRecord":"2026-03-01T05:00:00Z",
		"approximateArrivalOfLastRecord":"2026-03-01T05:00:02Z","batchSize":3,"streamArn":"s"}}`, past)
	s.world.RelayLetters.Put("r-2", "hello", past)
}

// undispatched puts letters of the dispatcher's of several fates into the world.
func undispatched(s *shell) {
	past, far := s.world.Clock.Add(-2*time.Hour), s.world.Clock.Add(time.Hour)
	s.world.Subscriptions["partner"] = delivery.Subscription{ID: "partner", Tenant: "default", State: delivery.Active}
	s.world.Subscriptions["quiet"] = delivery.Subscription{ID: "quiet", Tenant: "default", State: delivery.Paused, StateAt: past}
	s.world.Subscriptions["gone"] = delivery.Subscription{ID: "gone", Tenant: "default", State: delivery.Stopped, StateAt: past}
	for i, d := range []delivery.Delivery{
		{ID: "dl_due", Status: delivery.Pending},
		{ID: "dl_late", Status: delivery.Retry, Deadline: past, LastError: "status_503"},
		{ID: "dl_stopped", Status: delivery.Pending, Subscription: "gone"},
		{ID: "dl_paused", Status: delivery.Pending, Subscription: "quiet"},
		{ID: "dl_faulted", Status: delivery.Faulted, LastError: "key_missing"},
		{ID: "dl_dead", Status: delivery.Dead, LastError: "status_404"},
		{ID: "dl_delivered", Status: delivery.Delivered},
	} {
		d.Tenant, d.NextAttemptAt, d.Effect.InboxID = "default", past, "in_done"
		if d.Subscription == "" {
			d.Subscription = "partner"
		}
		if d.Deadline.IsZero() {
			d.Deadline = far
		}
		s.world.Deliveries[d.ID] = d
		s.world.DeliveryLetters.Put(fmt.Sprintf("d-%d", i+1), wakeText(d.Wake()), past)
	}
	effect := webhook.Effect{InboxID: "in_done", Tenant: "default", Type: "payment.succeeded", BodyExpiresAt: far}
	open := webhook.NewEffectOutbox(effect, 0, 3, past)
	effect.Ordinal, effect.Call = 1, "nobody"
	call := webhook.NewEffectOutbox(effect, 0, 3, past)
	s.world.Promises[open.ID], s.world.Promises[call.ID] = open, call
	effect.Ordinal = 2
	for i, o := range []webhook.Outbox{open, call, webhook.NewEffectOutbox(effect, 0, 3, past)} {
		s.world.DeliveryLetters.Put(fmt.Sprintf("e-%d", i+1), wakeText(webhook.NewWake(o)), past)
	}
	s.world.DeliveryLetters.Put("d-odd", `{"v":1,"topic":"deliver","delivery_id":""}`, past)
}

func wakeText(w webhook.Wake) string {
	body, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// Proves R3: what the dispatcher could not take is shown with what becomes of it,
// and redriven like the events' letters.
func TestDLQCommandsForDeliveries(t *testing.T) {
	s := created(t)
	undispatched(s)
	of := func(words ...string) []string { return append(words, "--local", "--queue", "deliveries") }
	s.run("", of("dlq", "list")...)
	s.run("", of("dlq", "list", "--json")...)
	s.run("", of("dlq", "redrive", "--plan")...)
	s.run("", of("dlq", "redrive", "--plan", "--prune", "--json")...)
	s.run("no\n", of("dlq", "redrive", "--reason", "ticket 7")...)
	s.run("", of("dlq", "redrive", "--replay-failed", "--plan")...)
	s.run("yes\n", of("dlq", "redrive", "--prune", "--reason", "ticket 7", "--rate", "10")...)
	for i := range 5 {
		s.world.DeliveryLetters.Put(fmt.Sprintf("d-%d", 8+i), "hello", s.world.Clock)
	}
	s.world.DeliveryLetters.Task = &webhook.Move{StartedAt: s.world.Clock, Running: true, ToMove: 5}
	s.run("", of("dlq", "list")...)
	s.run("", of("dlq", "redrive", "--plan")...)
	s.run("", of("dlq", "redrive", "--reason", "ticket 7", "--yes", "--json")...)
	s.run("", "audit", "list", "--local")
	s.wantGolden("dlq_deliveries")
}

// Proves R3: what lies in the dead letters is shown with what becomes of it, and
// a redrive shows its plan, asks, and does it.
func TestDLQCommands(t *testing.T) {
	s := created(t)
	s.run("", "dlq", "list", "--local")
	s.run("", "dlq", "list", "--local", "--json")
	s.run("", "dlq", "redrive", "--local", "--plan")
	dead(s)
	s.run("", "dlq", "list", "--local")
	s.run("", "dlq", "list", "--local", "--json")
	s.run("", "dlq", "list", "--local", "--queue", "events", "--limit", "1")
	redrive := func(words ...string) []string { return append([]string{"dlq", "redrive", "--local"}, words...) }
	s.run("", redrive("--plan")...)
	s.run("", redrive("--plan", "--prune", "--replay-failed", "--json")...)
	s.run("no\n", redrive("--reason", "ticket 7")...)
	s.run("", redrive("--queue", "relay", "--reason", "ticket 7", "--yes")...)
	s.run("yes\n", redrive("--queue", "events", "--prune", "--replay-failed", "--reason", "ticket 7", "--rate", "10")...)
	s.world.EventLetters.Put("m-8", "hello", s.world.Clock)
	s.world.EventLetters.Task = &webhook.Move{StartedAt: s.world.Clock, Running: true, ToMove: 1}
	s.run("", "dlq", "list", "--local", "--queue", "events")
	s.run("", redrive("--reason", "ticket 7", "--yes", "--json")...)
	s.world.EventLetters.Put("m-9", "hello", s.world.Clock)
	s.world.Lose = func(call string) error {
		if call == "Move" {
			s.world.EventLetters.Task = &webhook.Move{Failure: "CouldNotDetermineMessageSource"}
		}
		return nil
	}
	s.run("", redrive("--reason", "ticket 7", "--yes")...)
	s.world.Fail = operatortest.Down("Receive")
	s.run("", "dlq", "list", "--local")
	s.world.Fail = func(string) error { return nil }
	s.run("", "audit", "list", "--local")
	for _, args := range []string{
		"dlq list --local --queue both", "dlq list --local --limit 0", "dlq redrive --local", "dlq redrive --local --reason x --rate 501",
		"dlq redrive --local --queue relay --reason x --prune", "dlq redrive --local --queue x --plan",
	} {
		if r := s.run("", strings.Fields(args)...); r.code != exitUsage || r.out != "" {
			t.Errorf("dakghar %s: exit %d, output %q; want 2 and nothing", args, r.code, r.out)
		}
	}
	s.wantGolden("dlq")
}

func TestAnInterruptedRedriveSaysHowItGoesOn(t *testing.T) {
	s := created(t)
	dead(s)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.world.Lose = func(call string) error {
		if call == "Move" {
			cancel()
		}
		return nil
	}
	r := s.quietly("", "dlq", "redrive", "--local", "--queue", "events", "--reason", "ticket 7", "--yes")
	if r.code != exitFailed || !strings.Contains(r.err, "goes on by itself") || !strings.Contains(r.err, "the same command goes on") {
		t.Errorf("exit %d, error %q", r.code, r.err)
	}
}

// A sift says every two seconds how many letters it has looked at, also where none
// of them goes, and one that is interrupted says what it did.
func TestTheProgressOfASift(t *testing.T) {
	s := created(t)
	dead(s)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.world.Fail = func(call string) error {
		switch call {
		case "Receive":
			s.world.Advance(time.Second)
		case "Move":
			cancel()
		}
		return nil
	}
	r := s.quietly("", "dlq", "redrive", "--local", "--queue", "events", "--prune", "--replay-failed", "--rate", "1", "--reason", "ticket 7", "--yes")
	var told []string
	for line := range strings.Lines(r.err) {
		if strings.Contains(line, " deleted") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	want := []string{
		"2 looked at, 0 replayed, 1 deleted, about 0 moved, 0 brought near after 2s",
		"4 looked at, 1 replayed, 2 deleted, about 0 moved, 0 brought near after 4s",
		"6 looked at, 1 replayed, 4 deleted, about 0 moved, 0 brought near after 6s",
		"7 looked at, 1 replayed, 4 deleted, about 0 moved, 0 brought near after 8s",
		"dakghar: interrupted after 1 replayed, 4 deleted, about 1 moved, 0 brought near; a move that the queue has begun goes on by itself",
	}
	if diff := cmp.Diff(want, told); diff != "" || r.code != exitFailed {
		t.Errorf("exit %d, told (-want +got):\n%s\nof %q", r.code, diff, r.err)
	}
}

// Proves R3: recorded events are handled once more and what differs is shown;
// with --fail-on-difference the exit code says so too.
func TestShadowCommand(t *testing.T) {
	s := created(t)
	s.quietly("", "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--object-id", "pi_1", "--amount", "1250", "--currency", "EUR", "--json")
	var id webhook.InboxID
	for i, row := range s.world.Rows {
		row.Status, row.Outcome, row.ProcessedAt = webhook.Processed, webhook.Applied, s.world.Clock
		s.world.Rows[i], id = row, i
	}
	shadow := func(words ...string) {
		s.run("", append([]string{"shadow", "--local", "--endpoint", "demo", "--since", "1h", "--reason", "release 12"}, words...)...)
	}
	shadow() // no ledger tells of it: its history is unknown, and it is applied to the rows as they are
	ev := webhook.Event{
		Tenant: "default", Provider: "stripe", Endpoint: "demo", InboxID: id, Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_1"},
	}
	s.world.Items[business.LedgerEntryKey(ev)] = webhook.Item{business.AttrAmount: int64(7), "old": "x\x1b[2J"}
	s.world.Items[business.Key(ev, "left over")] = webhook.Item{"a": true}
	shadow()
	shadow("--json")
	shadow("--fail-on-difference")
	row := s.world.Rows[id]
	row.Outcome = webhook.Stale
	s.world.Rows[id] = row
	shadow("--limit", "1", "--fail-on-difference", "--json")
	delete(s.world.Bodies, row.BodyID)
	shadow("--fail-on-difference")
	s.run("", "shadow", "--local", "--endpoint", "demo", "--since", "1h")
	s.run("", "shadow", "--local", "--endpoint", "nobody", "--since", "1h", "--reason", "x")
	shadow("--limit", "0")
	s.run("", "audit", "list", "--local", "--limit", "1")
	s.wantGolden("shadow")
}

// Proves R3, D5 on the real adapters: the queues that the template names, over the network.
func TestDeadLettersOnARunningStack(t *testing.T) {
	s := startStack(t)
	onStack(t, s, exitDone, first, "endpoint create --local --provider stripe --id demo --secret-file -")
	row := store(t, s, []byte(`{"a":1}`)) // HELD
	env, client := settings(s.Declared().Outputs), sqs.NewFromConfig(s.Config())
	put := func(queue, body string) {
		url := env[queue]
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	put("EVENT_DEAD_LETTERS_URL", fmt.Sprintf(`{"v":1,"inbox_id":%q,"topic":"process"}`, row.ID))
	put("RELAY_FAILURES_URL", `{"DDBStreamBatchInfo":{"shardId":"shardId-1","batchSize":1}}`)
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for range 2 { // a look takes nothing out
		want("events", column(t, onStack(t, s, exitDone, "", "dlq list --local --queue events --limit 1 --json"), "record"), "letter queue")
	}
	want("all", column(t, onStack(t, s, exitDone, "", "dlq list --local --json"), "record"), "letter queue queue report queue behind")
	letter, _, _ := strings.Cut(onStack(t, s, exitDone, "", "dlq list --local --queue events --json"), "\n")
	want("becomes", column(t, letter+"\n", "becomes"), "held")
	redrive := "dlq redrive --local --prune --reason ticket --yes --json"
	done := lastLine(onStack(t, s, exitDone, "", redrive))
	want("deleted", column(t, done, "deleted"), "1")
	want("reports", column(t, done, "reports_deleted"), "1")
	want("left", column(t, onStack(t, s, exitDone, "", "dlq list --local --json"), "record"), "queue queue queue behind")
	want("acts", column(t, onStack(t, s, exitDone, "", "audit list --local --json"), "act"), "dlq redrive dlq redrive dlq redrive endpoint create")
	want("shadow", column(t, onStack(t, s, exitDone, "", "shadow --local --endpoint demo --since 1h --reason ticket --json"), "events"), "0")
}

// stubborn is a dispatcher that takes no message, which is shown again at once,
// until it is mended; then it tells of what it takes.
type stubborn struct {
	mended atomic.Bool
	took   chan string
}

func (f *stubborn) make(_ context.Context, getenv func(string) string) (lambda.Handler, error) {
	client := sqs.New(sqs.Options{
		Region: getenv("AWS_REGION"), BaseEndpoint: aws.String(getenv("AWS_ENDPOINT_URL")), Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	queue := getenv("DELIVERY_QUEUE_URL")
	return func(ctx context.Context, raw []byte) ([]byte, error) {
		var batch events.SQSEvent
		if err := json.Unmarshal(raw, &batch); err != nil {
			return nil, err
		}
		var response events.SQSEventResponse
		for _, m := range batch.Records {
			if f.mended.Load() {
				f.took <- m.Body
				continue
			}
			if _, err := client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &queue, ReceiptHandle: &m.ReceiptHandle, VisibilityTimeout: 0}); err != nil {
				return nil, err
			}
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
		return json.Marshal(response)
	}, nil
}

// Proves R3 on the real adapters: a wake-up that the dispatcher failed for five
// times is shown with what becomes of it, and the queue's own service brings it back.
func TestDeadLettersOfTheDispatcherOnARunningStack(t *testing.T) {
	dispatcher := &stubborn{took: make(chan string, 10)}
	s := startStackWith(t, func(o *devstack.Options) { o.InProcess["DispatcherFunction"] = dispatcher.make })
	onStack(t, s, exitDone, "", "subscription create --local --id partner --url http://127.0.0.1:9/hooks --json")
	store := deliveriesOn(s)
	sub, _, err := store.Subscription(t.Context(), "partner")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Millisecond).UTC()
	effect := webhook.Effect{ID: "ev_1", InboxID: "in_1", Tenant: "default", Type: "payment.succeeded", BodyID: "bd_1", Digest: "d", BodyExpiresAt: now.Add(30 * 24 * time.Hour), CreatedAt: now}
	due := delivery.New(effect, sub, now)
	effect.ID = "ev_2"
	ended := delivery.New(effect, sub, now)
	for _, d := range []delivery.Delivery{due, ended} {
		if ok, err := store.CreateDelivery(t.Context(), d); err != nil || !ok {
			t.Fatalf("create: %v, %v", ok, err)
		}
	}
	if ok, err := store.ChangeDelivery(t.Context(), ended.Cancel(now, "test")); err != nil || !ok {
		t.Fatalf("cancel: %v, %v", ok, err)
	}
	env, client := settings(s.Declared().Outputs), sqs.NewFromConfig(s.Config())
	for i, d := range []delivery.Delivery{due, ended} {
		url, body := env["DELIVERY_QUEUE_URL"], wakeText(d.Wake())
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
		buried(t, &queue.DeadLetters{Client: client, URL: env["DELIVERY_DEAD_LETTERS_URL"]}, i+1)
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	of := "--local --queue deliveries --json"
	list := onStack(t, s, exitDone, "", "dlq list "+of)
	fates := map[string]any{}
	for _, o := range objects(t, list) {
		if o["record"] == "letter" {
			fates[fmt.Sprint(o["delivery_id"])] = []any{o["subscription_id"], o["status"], o["becomes"]}
		}
	}
	if diff := cmp.Diff(map[string]any{
		string(due.ID): []any{"partner", "PENDING", "claimed"}, string(ended.ID): []any{"partner", "CANCELLED", "ended"},
	}, fates); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	dispatcher.mended.Store(true)
	done := lastLine(onStack(t, s, exitDone, "", "dlq redrive --prune --reason ticket --yes "+of))
	if deleted, moved := column(t, done, "deleted"), column(t, done, "moved"); deleted != "1" || moved != "1" {
		t.Fatalf("%s deleted and %s moved, want one each", deleted, moved)
	}
	want("brought back", <-dispatcher.took, wakeText(due.Wake()))
	want("left", column(t, onStack(t, s, exitDone, "", "dlq list "+of), "record"), "queue")
	want("acts", column(t, onStack(t, s, exitDone, "", "audit list --local --json"), "subject"), "queue deliveries subscription partner")
}

// buried waits until a queue has so many letters, and leaves them there.
func buried(t *testing.T, q *queue.DeadLetters, n int) {
	t.Helper()
	var there []webhook.Letter
	for len(there) < n {
		got, err := q.Receive(t.Context(), time.Minute) // waits for some
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, got...)
	}
	if err := q.GiveBack(t.Context(), there); err != nil {
		t.Fatal(err)
	}
}

func lastLine(text string) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return all[len(all)-1] + "\n"
}
