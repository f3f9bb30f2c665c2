package sim_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/delivery"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// Every world of this package holds its programs to the roles of the template, so
// that a missing permission fails the test that meets it. Here it is proven that
// nothing else is granted: the scenarios and the tours below together use every
// grant, but for those that [byOthers] gives a reason for.
//
// Proves S1, D6.
func TestEveryGrantIsUsed(t *testing.T) {
	t.Parallel()
	use := &sim.Use{}
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios() {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				s.Options.Use = use
				s.Points(t)
			})
		}
	})
	t.Run("tours", func(t *testing.T) {
		for name, tour := range tours() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tour(t, use)
			})
		}
	})
	unused := use.Unused()
	for role, lines := range byOthers() {
		for line, reason := range lines {
			i := slices.Index(unused[role], line)
			if i < 0 {
				t.Errorf("%s: %s is used by our code, or not granted; its reason is void: %s", role, line, reason)
				continue
			}
			unused[role] = slices.Delete(unused[role], i, i+1)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(unused)) {
		for _, line := range unused[role] {
			t.Errorf("%s: %s is granted and never used", role, line)
		}
	}
}

// byOthers are the grants that no call of our code uses, each with its reason.
func byOthers() map[string]map[string]string {
	const (
		logs    = "Lambda's runtime writes a function's output"
		stream  = "Lambda reads the stream with the function's role"
		queue   = "Lambda polls the queue with the function's role"
		given   = "Lambda reports with the function's role what it gave up"
		nowhere = "what stands where no sink is configured; the guard's own tests read such calls"
		tables  = "DynamoDB uses the key with its caller's role, only where TableKey is data-key"
	)
	out := map[string]map[string]string{
		"RelayRole": {
			"FindTheStream: dynamodb:ListStreams on OutboxTable.Arn/stream/*":    stream,
			"ReadTheStream: dynamodb:DescribeStream on OutboxTable.StreamArn":    stream,
			"ReadTheStream: dynamodb:GetRecords on OutboxTable.StreamArn":        stream,
			"ReadTheStream: dynamodb:GetShardIterator on OutboxTable.StreamArn":  stream,
			"WakeWorkersAndReportFailures: sqs:SendMessage on RelayFailures.Arn": given,
		},
		"ProcessorRole": {
			"ConsumeWakeUps: sqs:DeleteMessage on EventQueue.Arn":      queue,
			"ConsumeWakeUps: sqs:GetQueueAttributes on EventQueue.Arn": queue,
			"ConsumeWakeUps: sqs:ReceiveMessage on EventQueue.Arn":     queue,
		},
		"DispatcherRole": {
			"ConsumeWakeUps: sqs:DeleteMessage on DeliveryQueue.Arn":                                                    queue,
			"ConsumeWakeUps: sqs:GetQueueAttributes on DeliveryQueue.Arn":                                               queue,
			"ConsumeWakeUps: sqs:ReceiveMessage on DeliveryQueue.Arn":                                                   queue,
			"DeliverToQueues: sqs:SendMessage on DeliveryQueue.Arn":                                                     nowhere,
			"DeliverToBuses: events:PutEvents on arn:aws:events:${AWS::Region}:${AWS::AccountId}:event-bus/none-of-sim": nowhere,
		},
		"IngressRole": {}, "ReconcilerRole": {},
	}
	for role, lines := range out {
		group := strings.TrimSuffix(role, "Role") + "Logs.Arn"
		lines["WriteOwnLogs: logs:CreateLogStream on "+group] = logs
		lines["WriteOwnLogs: logs:PutLogEvents on "+group] = logs
		for _, action := range []string{"Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey", "ReEncryptFrom", "ReEncryptTo"} {
			lines["TablesOnTheDataKey: kms:"+action+" on DataKey.Arn if kms:viaservice StringEquals dynamodb.${AWS::Region}.amazonaws.com"] = tables
		}
	}
	return out
}

// tours are the ways that no scenario goes: limits, large and missing bodies,
// erasures, the daily comparison, partners who fail for days.
func tours() map[string]func(*testing.T, *sim.Use) {
	return map[string]func(*testing.T, *sim.Use){
		"an acceptance fails behind its body": tourOfARenewedBody,
		"an endpoint with a limit":            tourOfAnEndpointsLimit,
		"an erased event comes again":         tourOfAnErasedEvent,
		"a back-fill of large bodies":         tourOfALargeBackfill,
		"a back-fill beside an erasure":       tourOfALateErasure,
		"a day passes":                        tourOfADay,
		"a plan of all kinds of writes":       tourOfAPlan,
		"a gap asks for a back-fill":          tourOfAGap,
		"an object is fetched":                tourOfAFetch,
		"effects are large":                   tourOfLargeEffects,
		"many partners":                       tourOfManyPartners,
		"a partner with a limit":              tourOfAPartnersLimit,
		"a partner fails for days":            tourOfAPausedPartner,
		"bodies are missing":                  tourOfMissingBodies,
		"our key does not answer":             tourOfAnOutage,
	}
}

// withFaults are the options of a world in which one program's calls go wrong.
func withFaults(use *sim.Use, program string, o sim.Options) (sim.Options, *sim.Faults) {
	faults := &sim.Faults{}
	o.Use, o.Middleware = use, map[string]func(*middleware.Stack) error{program: faults.Middleware}
	return o, faults
}

func tourOfARenewedBody(t *testing.T, use *sim.Use) {
	o, faults := withFaults(use, "ingress", sim.Options{})
	w := sim.New(t, o)
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Times: 10, Err: sim.ErrThrottle})
	send(w, stripe(w), "evt_1")
	faults.Clear()
	wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
}

func tourOfAnEndpointsLimit(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	e := stripe(w)
	limited(w, e)
	w.Advance(time.Minute)
	send(w, e, "evt_1", "evt_2", "evt_3")
	wantEnd(t, w, map[string]int{"PROCESSED applied": 3})
}

func limited(w *sim.World, e *sim.Endpoint) {
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Rate, e.Burst = 1, 1
		return e
	})
}

func erase(t *testing.T, w *sim.World, event webhook.EventID) {
	t.Helper()
	if _, err := w.Command(business.Standard()).Erase(t.Context(), inbox(event), "request 77"); err != nil {
		t.Fatal(err)
	}
}

func tourOfAnErasedEvent(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, InlineBytes: 1})
	d := w.Event(stripe(w), payment("evt_1"))
	w.Send(d)
	w.Settle()
	erase(t, w, "evt_1")
	w.RestartIngress()
	if status := w.Post(d); status != 200 {
		t.Errorf("a repeat is answered %d", status)
	}
}

func tourOfALargeBackfill(t *testing.T, use *sim.Use) {
	api := fakeprovider.New()
	o, faults := withFaults(use, "reconciler", sim.Options{API: api, InlineBytes: 1})
	w := sim.New(t, o)
	e := asking(w, api)
	limited(w, e)
	w.Advance(time.Minute)
	w.Send(had(w, api, e, "evt_1"))
	w.Settle()
	erase(t, w, "evt_1")
	had(w, api, e, "evt_2")
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Table: "InboxTable", Times: 10, Err: sim.ErrThrottle})
	w.Reconcile()
	faults.Clear()
	passes(w, e.ID)
	w.Rest()
	if n := len(w.Inbox()); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// tourOfALateErasure is an event that comes, is done and erased between looking
// for it and accepting it from the list.
func tourOfALateErasure(t *testing.T, use *sim.Use) {
	api := fakeprovider.New()
	o, faults := withFaults(use, "reconciler", sim.Options{API: api, InlineBytes: 1})
	w := sim.New(t, o)
	e := asking(w, api)
	w.Advance(time.Minute)
	sample := payment("evt_1")
	sample.At = w.Now()
	d := w.Event(e, sample)
	api.Event(d.Sample.Body)
	faults.Add(sim.Fault{Operation: "PutObject", Times: 1, Meanwhile: func() {
		w.Send(d)
		w.Settle()
		erase(t, w, "evt_1")
	}})
	passes(w, e.ID)
	if row := w.Row(inbox("evt_1")); row.ErasedAt.IsZero() || w.BodyKept(row.Digest, e.ID) {
		t.Errorf("the bytes are there again: %+v", row)
	}
}

// tourOfADay compares the events of a day with their promises, marks and bodies.
// One has a promise of another life, one has none.
func tourOfADay(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	e := stripe(w)
	w.Reconcile() // the comparison begins here
	send(w, e, "evt_1", "evt_2")
	w.PumpStream()
	w.Settle()
	w.Hold(inbox("evt_2"))
	send(w, e, "evt_3")
	w.ForgetPromise(inbox("evt_3"))
	w.DropStream()
	w.PutPromise(webhook.Outbox{ID: webhook.NewOutboxID(inbox("evt_1"), webhook.TopicProcess, 0), InboxID: inbox("evt_1"), Endpoint: e.ID, Topic: webhook.TopicProcess, Gen: 99, CreatedAt: w.Now(), DueAt: w.Now(), WakeAt: w.Now()})
	for range 3 {
		w.Advance(24 * time.Hour)
		w.Reconcile()
	}
}

func tourOfAPlan(t *testing.T, use *sim.Use) {
	key := func(sort string) webhook.Key { return webhook.Key{PK: "tour", SK: sort} }
	w := sim.New(t, sim.Options{Use: use, Handlers: handling(func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
		return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{
			webhook.DeleteItem(key("old")), webhook.CheckItem(key("other")).If(webhook.Unchanged, webhook.IfAbsent()),
		}}, nil
	})})
	send(w, stripe(w), "evt_1")
	w.Rest()
	if diff := cmp.Diff(map[string]int{"PROCESSED applied": 1}, outcomes(w)); diff != "" {
		t.Errorf("rows ended (-want +got):\n%s", diff)
	}
}

func tourOfAGap(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, API: fakeprovider.New()})
	e := sequenced(w)
	w.Provide(e, "made up, and never shown: this sender has no API", nil, 24*time.Hour)
	w.Advance(time.Minute)
	w.Send(w.Event(e, step(2)))
	w.Settle()
	if w.Backfilled(e.ID).WantedAt.IsZero() {
		t.Error("nobody asked for a back-fill")
	}
}

func tourOfAFetch(t *testing.T, use *sim.Use) {
	api := fakeprovider.New()
	w := sim.New(t, sim.Options{Use: use, API: api, AskAPI: true})
	e := asking(w, api)
	w.Configure(e, policies("refund.updated")(webhook.ByFetch))
	api.Put("stripe", "refunds", refundNow("succeeded"))
	w.Send(w.Event(e, refund("evt_1")))
	w.Rest()
	for _, wrong := range wantRefund(w) {
		t.Error(wrong)
	}
}

func tourOfLargeEffects(t *testing.T, use *sim.Use) {
	o, faults := withFaults(use, "processor", sim.Options{InlineBytes: 1})
	w := sim.New(t, o)
	var e *sim.Endpoint
	told(&e, 1, nil)(w)
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 10, Err: sim.ErrThrottle})
	send(w, e, "evt_1")
	w.Settle()
	faults.Clear()
	w.Rest()
	for _, wrong := range wantDeliveries(map[delivery.Status]int{delivery.Delivered: 1})(w) {
		t.Error(wrong)
	}
}

func tourOfManyPartners(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	var e *sim.Endpoint
	told(&e, 60, nil)(w)
	send(w, e, "evt_1")
	w.Rest()
	for _, wrong := range wantDeliveries(map[delivery.Status]int{delivery.Delivered: 60})(w) {
		t.Error(wrong)
	}
}

func tourOfAPartnersLimit(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	var e *sim.Endpoint
	told(&e, 1, func(s *delivery.Subscription) { s.Rate, s.Burst = 1, 1 })(w)
	send(w, e, "evt_1", "evt_2")
	w.Rest()
	for _, wrong := range wantDeliveries(map[delivery.Status]int{delivery.Delivered: 2})(w) {
		t.Error(wrong)
	}
}

// tourOfAPausedPartner is one attempt too much: the others are told of the pause.
func tourOfAPausedPartner(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	var e *sim.Endpoint
	told(&e, 1, func(s *delivery.Subscription) { s.FailingSince = w.Now().Add(-delivery.FailingMax) })(w)
	w.Partner.Always(sim.PartnerAnswer{Status: 500})
	send(w, e, "evt_1")
	w.Settle()
	s, _, err := w.Outside.Subscription(t.Context(), "sub_00")
	if err != nil || s.State != delivery.Paused {
		t.Errorf("the subscription is %s (%v), want paused", s.State, err)
	}
}

// tourOfMissingBodies asks S3 for objects that are not there.
func tourOfMissingBodies(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, InlineBytes: 1})
	var e *sim.Endpoint
	told(&e, 1, nil)(w)
	send(w, e, "evt_1")
	w.DropObjects()
	w.Settle()
	send(w, e, "evt_2")
	for w.PumpStream() {
	}
	w.PumpQueue()
	w.DropObjects()
	w.Settle()
}

func tourOfAnOutage(t *testing.T, use *sim.Use) {
	o, faults := withFaults(use, "processor", sim.Options{})
	w := sim.New(t, o)
	faults.Add(sim.Fault{Operation: "Decrypt", Times: -1, Err: sim.ErrLost})
	e := stripe(w)
	for _, event := range []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5", "evt_6"} {
		send(w, e, event)
		w.Minute()
	}
	faults.Clear()
	wantEnd(t, w, map[string]int{"PROCESSED applied": 6})
}

// planted writes a copy of the template in which one text is another.
func planted(t *testing.T, was, is string) string {
	t.Helper()
	text, err := os.ReadFile(sim.TemplatePath())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), was) != 1 {
		t.Fatalf("the template has %d times %q, want once", strings.Count(string(text), was), was)
	}
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), was, is, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The roles' test would see a permission too much: an action, a resource, a kind
// of registry row.
func TestAPlantedSurplusIsFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, was, is, want string }{
		{
			"action", "Action: [dynamodb:PutItem, dynamodb:GetItem]\n                Resource: !GetAtt InboxTable.Arn",
			"Action: [dynamodb:PutItem, dynamodb:GetItem, dynamodb:Scan]\n                Resource: !GetAtt InboxTable.Arn",
			"AcceptEvents: dynamodb:Scan on InboxTable.Arn",
		},
		{
			"resource", "Action: dynamodb:PutItem\n                Resource: !GetAtt OutboxTable.Arn",
			"Action: dynamodb:PutItem\n                Resource: [!GetAtt OutboxTable.Arn, !GetAtt DeliveryTable.Arn]",
			"PromiseWork: dynamodb:PutItem on DeliveryTable.Arn",
		},
		{
			"row", `Action: dynamodb:UpdateItem
                Resource: !GetAtt RegistryTable.Arn
                Condition:
                  ForAllValues:StringLike: {"dynamodb:LeadingKeys": "tokens#*"}`, `Action: dynamodb:UpdateItem
                Resource: !GetAtt RegistryTable.Arn
                Condition:
                  ForAllValues:StringLike: {"dynamodb:LeadingKeys": ["tokens#*", "audit#*"]}`,
			"KeepEndpointsLimits: dynamodb:UpdateItem on RegistryTable.Arn if dynamodb:leadingkeys ForAllValues:StringLike audit#*",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before, after := &sim.Use{}, &sim.Use{}
			path := planted(t, tt.was, tt.is)
			for name, o := range map[string]sim.Options{"before": {Use: before}, "after": {Use: after, TemplatePath: path}} {
				t.Run(name, func(t *testing.T) {
					w := sim.New(t, o)
					send(w, stripe(w), "evt_1")
				})
			}
			var more []string
			for _, line := range after.Unused()["IngressRole"] {
				if !slices.Contains(before.Unused()["IngressRole"], line) {
					more = append(more, line)
				}
			}
			if diff := cmp.Diff([]string{tt.want}, more); diff != "" {
				t.Errorf("grants more (-want +got):\n%s", diff)
			}
		})
	}
}

// A permission too few is denied to the program, and said: an action, a key's
// context, a kind of registry row.
func TestAPlantedGapIsFound(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/sim-"
	for _, tt := range []struct{ name, was, is, want string }{
		{
			"action of a transaction's part", "Action: [dynamodb:PutItem, dynamodb:GetItem]\n                Resource: !GetAtt InboxTable.Arn",
			"Action: [dynamodb:GetItem]\n                Resource: !GetAtt InboxTable.Arn",
			"[IngressFunction] DENIED IngressRole: dynamodb:PutItem on " + arn + "InboxTable, because no identity-based policy allows the dynamodb:PutItem action",
		},
		{
			"row", "Action: [dynamodb:GetItem, dynamodb:PutItem]\n                Resource: !GetAtt RegistryTable.Arn\n                Condition:\n                  ForAllValues:StringLike: {\"dynamodb:LeadingKeys\": \"endpoint#*\"}",
			"Action: [dynamodb:GetItem, dynamodb:PutItem]\n                Resource: !GetAtt RegistryTable.Arn\n                Condition:\n                  ForAllValues:StringLike: {\"dynamodb:LeadingKeys\": \"endpoints#*\"}",
			"[IngressFunction] DENIED IngressRole: dynamodb:GetItem on " + arn + "RegistryTable, key endpoint#…, because no identity-based policy allows the dynamodb:GetItem action",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var denied []string
			w := sim.New(t, sim.Options{TemplatePath: planted(t, tt.was, tt.is), Denied: func(line string) {
				mu.Lock()
				defer mu.Unlock()
				denied = append(denied, line)
			}})
			if status := w.Post(w.Event(stripe(w), payment("evt_1"))); status != 503 {
				t.Errorf("the provider saw %d, want 503", status)
			}
			if diff := cmp.Diff([]string{tt.want}, slices.Compact(denied)); diff != "" {
				t.Errorf("denials (-want +got):\n%s", diff)
			}
		})
	}
}
