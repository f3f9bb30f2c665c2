package sqs

import (
	"container/heap"
	"time"
)

// message is one message of one queue. It is in exactly one of two timelines of
// its queue: ready, or waiting (delayed or in flight).
type message struct {
	id     string
	order  uint64 // breaks ties between messages of one instant
	body   string
	sum    string // MD5 of the body
	attrs  map[string]attributeValue
	group  string // MessageGroupId
	trace  string // AWSTraceHeader
	source string // ARN of the queue that gave it up as a dead letter

	sentAt          time.Time // first send: retention counts from here, in every queue
	visibleAt       time.Time // when it may be received, or could be
	receivedAt      time.Time
	firstReceivedAt time.Time
	receives        int
	inFlight        bool

	place    int // in ready or waiting
	agePlace int
}

// queue is a standard queue. All its methods need the server's lock.
type queue struct {
	name     string
	arn      string
	settings settings
	created  time.Time
	modified time.Time
	purged   time.Time

	messages map[string]*message
	ready    timeline
	waiting  timeline
	aging    timeline
	inFlight int

	changed chan struct{}
	tasks   []*moveTask // newest first
}

func newQueue(name, arn string, set settings, now time.Time) *queue {
	byVisibility := func(m *message) (time.Time, *int) { return m.visibleAt, &m.place }
	return &queue{
		name:     name,
		arn:      arn,
		settings: set,
		created:  now,
		modified: now,
		messages: map[string]*message{},
		ready:    timeline{key: byVisibility},
		waiting:  timeline{key: byVisibility},
		aging:    timeline{key: func(m *message) (time.Time, *int) { return m.sentAt, &m.agePlace }},
		changed:  make(chan struct{}),
	}
}

// notify wakes everybody who waits for a message.
func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// settle makes true what the passing of time has made true: delays and
// visibility timeouts that ended, messages that outlived the retention period.
func (q *queue) settle(now time.Time) {
	for m := q.waiting.first(); m != nil && !m.visibleAt.After(now); m = q.waiting.first() {
		q.lift(m)
		heap.Push(&q.ready, m)
	}
	oldest := now.Add(-q.settings.duration(messageRetentionPeriod))
	for m := q.aging.first(); m != nil && !m.sentAt.After(oldest); m = q.aging.first() {
		q.remove(m)
	}
}

// add puts a message in, receivable from its visibleAt on.
func (q *queue) add(m *message, now time.Time) {
	q.messages[m.id] = m
	heap.Push(&q.aging, m)
	q.place(m, now)
}

// place puts a message that is in neither timeline into the right one, and wakes
// those who wait if they would otherwise sleep past it.
func (q *queue) place(m *message, now time.Time) {
	if !m.visibleAt.After(now) {
		m.inFlight = false
		heap.Push(&q.ready, m)
		q.notify()
		return
	}
	if m.inFlight {
		q.inFlight++
	}
	heap.Push(&q.waiting, m)
	if q.waiting.first() == m {
		q.notify()
	}
}

// lift takes a message out of its timeline, no longer in flight.
func (q *queue) lift(m *message) {
	if q.waiting.holds(m) {
		heap.Remove(&q.waiting, m.place)
	} else {
		heap.Remove(&q.ready, m.place)
	}
	if m.inFlight {
		m.inFlight = false
		q.inFlight--
	}
}

// remove takes a message out of the queue.
func (q *queue) remove(m *message) {
	q.lift(m)
	heap.Remove(&q.aging, m.agePlace)
	delete(q.messages, m.id)
}

// timeline is a heap of messages by one of their times.
type timeline struct {
	key func(*message) (at time.Time, place *int)
	all []*message
}

func (t *timeline) first() *message {
	if len(t.all) == 0 {
		return nil
	}
	return t.all[0]
}

func (t *timeline) holds(m *message) bool {
	_, place := t.key(m)
	return *place < len(t.all) && t.all[*place] == m
}

func (t *timeline) Len() int { return len(t.all) }

func (t *timeline) Less(i, j int) bool {
	a, _ := t.key(t.all[i])
	b, _ := t.key(t.all[j])
	if a.Equal(b) {
		return t.all[i].order < t.all[j].order
	}
	return a.Before(b)
}

func (t *timeline) Swap(i, j int) {
	t.all[i], t.all[j] = t.all[j], t.all[i]
	t.seat(i)
	t.seat(j)
}

func (t *timeline) seat(i int) {
	_, place := t.key(t.all[i])
	*place = i
}

func (t *timeline) Push(m any) {
	t.all = append(t.all, m.(*message))
	t.seat(len(t.all) - 1)
}

func (t *timeline) Pop() any {
	last := len(t.all) - 1
	m := t.all[last]
	t.all[last] = nil
	t.all = t.all[:last]
	return m
}
