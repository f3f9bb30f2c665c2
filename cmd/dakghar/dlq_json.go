package main

import (
	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// letterView is a dead letter of the events or the deliveries in JSON.
type letterView struct {
	Record       string `json:"record"` // "letter"
	Queue        string `json:"queue"`
	MessageID    string `json:"message_id"`
	SentAt       stamp  `json:"sent_at"`
	Receives     int    `json:"receive_count"`
	Topic        word   `json:"topic"`
	InboxID      word   `json:"inbox_id"`
	Endpoint     word   `json:"endpoint_id"`
	Delivery     word   `json:"delivery_id"`
	Subscription word   `json:"subscription_id"`
	Status       word   `json:"status"`
	Cause        word   `json:"last_error"`
	Becomes      string `json:"becomes"`
	Useless      bool   `json:"useless"`
}

func letterJSON(q operator.Queue, l operator.DeadLetter) letterView {
	v := letterView{
		Record: "letter", Queue: string(q), MessageID: l.ID, SentAt: stamp(l.SentAt), Receives: l.Receives, Topic: word(l.Wake.Topic), InboxID: word(l.Wake.InboxID),
		Endpoint: word(l.Wake.Endpoint), Delivery: word(l.Wake.Delivery), Becomes: string(l.Fate), Useless: l.Fate.Useless(),
	}
	switch {
	case l.Row != nil:
		v.Endpoint, v.Status, v.Cause = word(l.Row.Endpoint), word(l.Row.Status), word(l.Row.LastError)
	case l.Delivery != nil:
		v.Subscription, v.Status, v.Cause = word(l.Delivery.Subscription), word(l.Delivery.Status), word(l.Delivery.LastError)
	case l.Promise != nil && l.Promise.Effect != nil:
		v.Subscription = word(l.Promise.Effect.Call)
	}
	return v
}

// reportView is a report of the stream's trigger in JSON.
type reportView struct {
	Record    string `json:"record"` // "report"
	Queue     string `json:"queue"`
	MessageID string `json:"message_id"`
	SentAt    stamp  `json:"sent_at"`
	Receives  int    `json:"receive_count"`
	Readable  bool   `json:"readable"`
	Condition word   `json:"condition"`
	Tries     int    `json:"tries"`
	Records   int    `json:"records"`
	Shard     word   `json:"shard_id"`
	First     word   `json:"first_sequence"`
	Last      word   `json:"last_sequence"`
	From      stamp  `json:"from"`
	To        stamp  `json:"to"`
}

func reportJSON(r operator.Report) reportView {
	return reportView{
		"report", "relay", r.ID, stamp(r.SentAt), r.Receives, r.Readable, word(r.Condition), r.Tries, r.Records, word(r.Shard), word(r.First), word(r.Last),
		stamp(r.From), stamp(r.To),
	}
}

// depthView ends the list of a queue in JSON.
type depthView struct {
	Record  string    `json:"record"` // "queue"
	Queue   string    `json:"queue"`
	Waiting int       `json:"waiting"`
	Hidden  int       `json:"hidden"`
	Shown   int       `json:"shown"`
	Move    *moveView `json:"move"`
}

type moveView struct {
	StartedAt stamp `json:"started_at"`
	Running   bool  `json:"running"`
	Moved     int   `json:"moved"`
	ToMove    int   `json:"to_move"`
	Failure   word  `json:"failure"`
}

func moveJSON(m *webhook.Move) *moveView {
	if m == nil {
		return nil
	}
	return &moveView{stamp(m.StartedAt), m.Running, m.Moved, m.ToMove, word(m.Failure)}
}

type behindView struct {
	Record      string `json:"record"` // "behind"
	Unpublished int    `json:"unpublished"`
	OldestDue   stamp  `json:"oldest_due_at"`
	LastWake    stamp  `json:"last_wake_at"`
}

type redrivePlanView struct {
	Record       string `json:"record"` // "plan"
	Act          string `json:"act"`    // "dlq redrive"
	Events       bool   `json:"events"`
	Deliveries   bool   `json:"deliveries"`
	Relay        bool   `json:"relay"`
	Prune        bool   `json:"prune"`
	ReplayFailed bool   `json:"replay_failed"`
	Rate         int    `json:"rate"`
	wakesView           // of the events
	// DeliveryLetters is the same of the deliveries, if they are asked for.
	DeliveryLetters *wakesView `json:"delivery_letters"`
	Reports         int        `json:"reports"`
	Unpublished     int        `json:"unpublished"`
}

// wakesView is the plan for a queue of wake-ups.
type wakesView struct {
	Waiting int                   `json:"waiting"`
	Sampled int                   `json:"sampled"`
	ByFate  map[operator.Fate]int `json:"by_fate"`
	Move    *moveView             `json:"move"`
}

func redrivePlanJSON(p operator.RedrivePlan) redrivePlanView {
	v := redrivePlanView{
		Record: "plan", Act: "dlq redrive", Events: p.Has(operator.QueueEvents), Deliveries: p.Has(operator.QueueDeliveries), Relay: p.Has(operator.QueueRelay),
		Prune: p.Prune, ReplayFailed: p.ReplayFailed, Rate: p.Rate, wakesView: wakesView{ByFate: map[operator.Fate]int{}},
		Reports: p.Reports, Unpublished: p.Behind.Unpublished,
	}
	for _, w := range p.Wakes {
		wakes := wakesView{w.Depth.Waiting, w.Sampled, w.ByFate, moveJSON(w.Moving)}
		if w.Queue == operator.QueueDeliveries {
			v.DeliveryLetters = &wakes
		} else {
			v.wakesView = wakes
		}
	}
	return v
}

type redrivenView struct {
	Record   string         `json:"record"` // "redriven"
	Replayed int            `json:"replayed"`
	Left     map[string]int `json:"left_alone"`
	Removed  int            `json:"deleted"`
	Moved    int            `json:"moved"`
	Near     int            `json:"brought_near"`
	Reports  int            `json:"reports_deleted"`
}
