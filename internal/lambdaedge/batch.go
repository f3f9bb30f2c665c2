package lambdaedge

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"dakghar/internal/ingress"
	"dakghar/internal/processor"
	"dakghar/internal/reconciler"
	"dakghar/internal/relay"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// Stream serves DynamoDB stream batches with a relay.
type Stream struct {
	Relay *relay.Relay
	// Outbox reads an outbox row from its stored attributes.
	Outbox func(webhook.Item) (webhook.Outbox, error)
	Log    *telemetry.Log
	Now    func() time.Time
}

// Handle publishes a batch. It returns the records that failed; Lambda hands in
// everything from the first of them on again. A record that cannot be read is
// counted and passed over: its row is durable, and blocking its shard would
// help nobody.
func (s *Stream) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	var rows []webhook.Outbox
	var sequence []string
	unreadable := 0
	for _, record := range batch.Records {
		if record.EventName == string(events.DynamoDBOperationTypeRemove) {
			continue
		}
		row, err := s.Outbox(itemOf(record.Change.NewImage))
		if err != nil {
			unreadable++
			continue
		}
		if row.PublishedAt.IsZero() {
			rows = append(rows, row)
			sequence = append(sequence, record.Change.SequenceNumber)
		}
	}
	now := s.Now()
	result := s.Relay.Publish(ctx, rows)
	var response events.DynamoDBEventResponse
	line := &telemetry.Line{}
	for i, err := range result.Errs {
		if err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: sequence[i]})
			line.Err(err)
			break
		}
	}
	line.Count("published", result.Published).Count("relay_failed", len(response.BatchItemFailures)).
		Count("unmarked", result.Unmarked).Count("left_to_due_index", result.Left).Count("unreadable", unreadable)
	if len(rows) > 0 {
		line.Millis("relay_lag_ms", now.Sub(rows[0].DueAt))
	}
	s.Log.Write(line)
	return response, nil
}

// itemOf keeps the attributes of the kinds that an outbox row has.
func itemOf(image map[string]events.DynamoDBAttributeValue) webhook.Item {
	item := make(webhook.Item, len(image))
	for name, v := range image {
		switch v.DataType() {
		case events.DataTypeString:
			item[name] = v.String()
		case events.DataTypeNumber:
			if n, err := strconv.ParseInt(v.Number(), 10, 64); err == nil {
				item[name] = n
			}
		default:
		}
	}
	return item
}

// Queue serves SQS batches with a processor.
type Queue struct {
	Processor *processor.Processor
	Log       *telemetry.Log
}

// Handle works on the messages of a batch side by side, so that none waits for
// another. A message that is not a wake-up, or a newer one than this program
// knows, is given back: it ends in the dead letters, where somebody looks.
// Every other message is finished with, whatever became of its row.
func (q *Queue) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	return each(ctx, batch, q.handle), nil
}

// each hands the messages of a batch to handle, side by side, and reports those
// that it does not finish with.
func each(ctx context.Context, batch events.SQSEvent, handle func(context.Context, events.SQSMessage) bool) events.SQSEventResponse {
	var response events.SQSEventResponse
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, message := range batch.Records {
		wg.Go(func() {
			if handle(ctx, message) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: message.MessageId})
		})
	}
	wg.Wait()
	sort.Slice(response.BatchItemFailures, func(i, j int) bool {
		return response.BatchItemFailures[i].ItemIdentifier < response.BatchItemFailures[j].ItemIdentifier
	})
	return response
}

// wakeOf reads a message that is to be one of ours. What is not, or is of a newer
// version than this program's, is told in the line and given back.
func wakeOf(message events.SQSMessage, line *telemetry.Line, ours func(webhook.Wake) bool) (webhook.Wake, bool) {
	var wake webhook.Wake
	err := json.Unmarshal([]byte(message.Body), &wake)
	switch {
	case err != nil || !ours(wake):
		line.Str("decision", "not_a_wake").Str("message_id", message.MessageId).Count("not_a_wake", 1)
		return wake, false
	case wake.Version > webhook.WakeVersion:
		line.Str("decision", "newer_wake").Str("message_id", message.MessageId).Count("newer_wake", 1)
		return wake, false
	}
	return wake, true
}

// recovered finishes with a message in whose work a rule of our own was broken in
// mid-air. The lease frees the row.
func recovered(v any, line *telemetry.Line) {
	line.Str("decision", "panic").Err(fmt.Errorf("a %T", v)).Count("panic", 1)
}

// kmsFailed counts what KMS did not do for a body's data key: an event that
// could be neither sealed nor opened.
const kmsFailed = "kms_failed"

// sealed counts a code of KMS's.
func sealed(line *telemetry.Line, code string) {
	if strings.HasPrefix(code, "body_kms_") {
		line.Count(kmsFailed, 1)
	}
}

func (q *Queue) handle(ctx context.Context, message events.SQSMessage) (finished bool) {
	line := &telemetry.Line{}
	defer func() {
		if v := recover(); v != nil {
			recovered(v, line)
			finished = true
		}
		q.Log.Write(line)
	}()
	wake, ok := wakeOf(message, line, func(w webhook.Wake) bool { return w.InboxID != "" && w.Topic == webhook.TopicProcess })
	if !ok {
		return false
	}
	r := q.Processor.Process(ctx, wake)
	line.Provider = string(r.Provider)
	if r.Decision == "failed" && r.Code == processor.GapExpired {
		line.Count(r.Code, 1) // it has an alarm of its own: what is missing is somebody else's event
	}
	line.Str("decision", r.Decision).Str("inbox_id", string(r.InboxID)).Str("endpoint_id", string(r.Endpoint)).
		Str("kind", string(r.Kind)).Str("code", r.Code).Str("fault", string(r.Fault)).Str("attempt", strconv.Itoa(r.Attempt)).
		Err(r.Err).Count(r.Decision, 1).Millis("age_ms", r.Age)
	sealed(line, r.Code)
	return true
}

// Schedule serves scheduled invocations with a reconciler, and with a back-fill
// where there is one.
type Schedule struct {
	Reconciler *reconciler.Reconciler
	Backfill   *ingress.Backfill
	Log        *telemetry.Log
}

// Handle makes one pass of each. An error that the pass went on past is returned all the
// same, so that it is counted as the function's.
func (s *Schedule) Handle(ctx context.Context) error {
	r := s.Reconciler.Run(ctx)
	line := &telemetry.Line{}
	decision := "ran"
	if !r.Ran {
		decision = "lease_taken"
	}
	line.Str("decision", decision).Err(errors.Join(r.Err, r.Audit.Err)).Count("looked", r.Looked)
	if r.Whole {
		// Without a whole scan there is no oldest: a missing figure, not a good one.
		line.Seconds("oldest_open_age_s", r.OldestS)
	}
	if r.OldestDueS > 0 {
		// Others may be due that this run did not meet: no figure then, and not a good one.
		line.Seconds("oldest_due_age_s", r.OldestDueS)
	}
	if r.Rotations.Known {
		line.Count("rotations_open", r.Rotations.Open).Seconds("rotation_age_s", r.Rotations.OldestS)
	}
	if r.Silence.Known {
		line.Count("silent_endpoints", r.Silence.Silent).Seconds("silent_age_s", r.Silence.OldestS)
	}
	for act, n := range r.Acts {
		line.Count("reconciler_"+act, n)
	}
	if given := r.Acts[reconciler.Exhausted] + r.Acts[reconciler.BodyExpiring] + r.Acts[reconciler.GapExpired]; given > 0 {
		line.Count("failed", given)
	}
	if r.Ran {
		line.Count("heartbeat", 1)
	}
	audit(line, r.Audit)
	for _, d := range r.Audit.Details {
		s.Log.Write((&telemetry.Line{}).Str("decision", "difference").Str("kind", string(d.Kind)).Str("done", string(d.Deed)).
			Str("inbox_id", string(d.InboxID)))
	}
	for _, e := range r.Silence.Told {
		s.Log.Write(told(e))
	}
	s.Log.Write(line)
	return errors.Join(r.Err, r.Audit.Err, s.backfill(ctx))
}

// told is the line of an endpoint that became silent, still is, or is not any more.
func told(e reconciler.SilentEndpoint) *telemetry.Line {
	decision := "silent"
	if e.Over {
		decision = "silence_over"
	}
	line := (&telemetry.Line{Provider: string(e.Provider)}).Str("decision", decision).Str("endpoint_id", string(e.ID)).Str("expect_every", e.ExpectEvery.String())
	if !e.LastEventAt.IsZero() {
		line.Str("last_event_at", e.LastEventAt.UTC().Format(time.RFC3339))
	}
	return line
}

// audit adds what the daily comparison found: a count for each kind of
// difference, and how old the next event to be compared is.
func audit(line *telemetry.Line, a reconciler.AuditReport) {
	if !a.Ran {
		return
	}
	line.Count("audit_compared", a.Compared).Seconds("audit_age_s", a.Age.Seconds())
	for _, kind := range reconciler.Kinds() {
		if n := a.Of(kind); n > 0 {
			line.Count("audit_"+string(kind), n)
		}
	}
	if n := a.Faults(); n > 0 {
		line.Count("audit_faults", n)
	}
}
