package relay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/relay"
	"dakghar/internal/webhook"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

var errNotTaken = errors.New("not taken")

// queue remembers what it took, and refuses some.
type queue struct {
	refuse map[webhook.OutboxID]bool
	sent   []webhook.Wake
	delays []time.Duration
}

func (q *queue) Send(_ context.Context, wakes []webhook.Wake, delays []time.Duration) []error {
	errs := make([]error, len(wakes))
	for i, w := range wakes {
		if q.refuse[w.OutboxID] {
			errs[i] = errNotTaken
			continue
		}
		q.sent, q.delays = append(q.sent, w), append(q.delays, delays[i])
	}
	return errs
}

// outbox collects marks.
type outbox struct {
	marks chan webhook.Published
	err   error
}

func (o *outbox) MarkPublished(_ context.Context, p webhook.Published) (bool, error) {
	o.marks <- p
	return o.err == nil, o.err
}

func row(id webhook.OutboxID, due time.Duration) webhook.Outbox {
	return webhook.Outbox{ID: id, InboxID: webhook.InboxID("in_" + id), Topic: webhook.TopicProcess, Gen: 3, DueAt: now.Add(due), InDueIndex: due > webhook.PublishAhead}
}

func publish(q *queue, o *outbox, rows ...webhook.Outbox) relay.Result {
	o.marks = make(chan webhook.Published, len(rows))
	r := &relay.Relay{Queue: q, Outbox: o, Now: func() time.Time { return now }}
	result := r.Publish(context.Background(), rows)
	close(o.marks)
	return result
}

// Proves D5: what is sent is what is marked, under its generation; a far row is
// left to the due index, and a refused one is handed back.
func TestPublishSendsThenMarks(t *testing.T) {
	t.Parallel()
	q := &queue{refuse: map[webhook.OutboxID]bool{"refused": true}}
	o := &outbox{}
	result := publish(q, o, row("now", 0), row("far", time.Hour), row("refused", 0), row("soon", 10*time.Minute))

	want := relay.Result{Errs: []error{nil, nil, errNotTaken, nil}, Published: 2, Left: 1}
	if diff := cmp.Diff(want, result, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]webhook.Wake{webhook.NewWake(row("now", 0)), webhook.NewWake(row("soon", 0))}, q.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{0, 10 * time.Minute}, q.delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	marks := map[webhook.OutboxID]webhook.Published{}
	for m := range o.marks {
		marks[m.ID] = m
	}
	wantMarks := map[webhook.OutboxID]webhook.Published{
		"now":  {ID: "now", Gen: 3, At: now, WakeAt: now.Add(5 * time.Minute)},
		"soon": {ID: "soon", Gen: 3, At: now, WakeAt: now.Add(15 * time.Minute)},
	}
	if diff := cmp.Diff(wantMarks, marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// A mark that fails is no failure of the record: sending it again at once would
// help nobody, and the reconciler looks within a minute.
func TestAFailedMarkIsCountedAndNotHandedBack(t *testing.T) {
	t.Parallel()
	result := publish(&queue{}, &outbox{err: errNotTaken}, row("now", 0))
	want := relay.Result{Errs: []error{nil}, Published: 1, Unmarked: 1}
	if diff := cmp.Diff(want, result, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestNothingToPublishMakesNoCall(t *testing.T) {
	t.Parallel()
	q := &queue{}
	result := publish(q, &outbox{}, row("far", time.Hour))
	want := relay.Result{Errs: []error{nil}, Left: 1}
	if diff := cmp.Diff(want, result); diff != "" || len(q.sent) > 0 {
		t.Errorf("result (-want +got):\n%s; sent %d", diff, len(q.sent))
	}
}
