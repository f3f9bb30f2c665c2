package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Shadow asks for recorded events to be handled once more, by the handlers of
// this program, with everything that they write diverted.
type Shadow struct {
	Endpoint     webhook.EndpointID
	Since, Until time.Time // when they were received
	Limit        int       // the newest that many, 1 to [ShadowMax]
	Why          string    // required: bodies are read
}

// ShadowMax bounds the events of one run.
const ShadowMax = 100_000

// Difference is one thing that the handlers of this program do otherwise than
// was recorded: how an event ends, or one attribute of a row.
type Difference struct {
	// Event is the event that ends otherwise; nil where it is a row.
	Event         *webhook.Inbox
	Recorded, Now string // outcomes, or what would become of it: failed, retry
	Code          string // of the fault, empty without one

	Key          webhook.Key // the row
	Attribute    string      // empty where a whole row is missing or too many
	Stored, Made any         // nil where there is none
}

// Shadowed is what a run came to.
type Shadowed struct {
	Events, Compared int
	Truncated        bool // there were more than the limit
	// Skipped counts the events that cannot be judged, by the reason.
	Skipped map[string]int
	// Outcomes and Rows count the differences.
	Outcomes, Rows int
	// Undecided counts events of objects whose history begins before the range, which
	// were applied and would be stale now: the rows hold their effect already.
	Undecided int
	// Objects counts those whose rows were compared, Partial those whose history does
	// not lie in the range or is not told by a ledger.
	Objects, Partial int
}

// Differences counts all of them.
func (s Shadowed) Differences() int { return s.Outcomes + s.Rows }

// The reasons for which an event is not judged.
const (
	skipFetch    = "policy_fetch"    // the provider's state of then is gone
	skipSequence = "policy_sequence" // its turn is kept by the processor
	skipBody     = "body_gone"
	skipMarked   = "already_applied" // how it ended the first time is not recorded
)

// Shadow handles PROCESSED events in the order in which they were processed, and
// tells of every difference. It writes nothing but the record of the act, which
// stands before the first body is opened. Objects whose whole history lies in
// the range begin with no rows, and their rows are compared at the end; for the
// others the handlers see the rows as they are.
func (o *Operator) Shadow(ctx context.Context, q Shadow, tell func(Difference)) (Shadowed, error) {
	run := &shadow{o: o, tell: tell, view: newOverlay(o.Business), stored: map[string]map[webhook.Key]webhook.Item{}}
	run.done.Skipped = map[string]int{}
	if err := run.begin(ctx, q); err != nil {
		return run.done, err
	}
	for i := range run.events {
		if err := run.prepare(ctx, &run.events[i]); err != nil {
			return run.done, err
		}
	}
	if err := run.histories(ctx); err != nil {
		return run.done, err
	}
	for i := range run.events {
		if err := run.compare(ctx, &run.events[i]); err != nil {
			return run.done, err
		}
	}
	run.rows()
	return run.done, nil
}

// shadow is one run.
type shadow struct {
	o        *Operator
	endpoint webhook.Endpoint
	adapter  *provider.Adapter
	tell     func(Difference)
	view     *overlay
	events   []recorded
	// stored are the rows of each whole object's partition, as they were read.
	stored map[string]map[webhook.Key]webhook.Item
	done   Shadowed
}

// recorded is one event of the past.
type recorded struct {
	row     webhook.Inbox
	event   webhook.Event // without its body
	handler business.Handler
	// ready is set when the event can be planned; now and code say what becomes of
	// it before any handler is asked, if that is decided.
	ready     bool
	now, code string
}

// begin finds the events and records the act.
func (s *shadow) begin(ctx context.Context, q Shadow) error {
	switch {
	case q.Limit < 1 || q.Limit > ShadowMax:
		return misuse(fmt.Sprintf("--limit is 1 to %d", ShadowMax))
	case q.Why == "":
		return misuse("--reason is required: the events' bodies are read, and that is recorded")
	}
	f, err := s.o.settle(ctx, webhook.Filter{
		Endpoint: q.Endpoint, Statuses: []webhook.Status{webhook.Processed}, Since: q.Since, Until: q.Until,
	})
	if err != nil {
		return err
	}
	if s.endpoint, err = s.o.endpoint(ctx, q.Endpoint); err != nil {
		return err
	}
	var known bool
	if s.adapter, known = s.o.Providers.Lookup(s.endpoint.Provider); !known {
		return refuse("provider_unknown", fmt.Sprintf("this command has no adapter for %s", s.endpoint.Provider),
			say("build it with the adapters that the functions have"))
	}
	if err := s.list(ctx, f, q.Limit); err != nil {
		return err
	}
	act, err := s.o.act(ctx, "shadow", "endpoint "+string(q.Endpoint), q.Why)
	if err != nil {
		return err
	}
	if err := s.o.Registry.RecordAct(ctx, act); err != nil {
		return unreachable("the registry", err)
	}
	return nil
}

// list takes the newest events of the range, and puts the one that was processed
// first at the front.
func (s *shadow) list(ctx context.Context, f webhook.Filter, limit int) error {
	rows, err := s.o.list(ctx, f)
	if err != nil {
		return err
	}
	for row, err := range rows {
		switch {
		case err != nil:
			return err
		case len(s.events) == limit:
			s.done.Truncated = true
		default:
			s.events = append(s.events, recorded{row: row})
			continue
		}
		break
	}
	slices.SortFunc(s.events, func(a, b recorded) int {
		if by := a.row.ProcessedAt.Compare(b.row.ProcessedAt); by != 0 {
			return by
		}
		if by := a.row.ReceivedAt.Compare(b.row.ReceivedAt); by != 0 {
			return by
		}
		return strings.Compare(string(a.row.ID), string(b.row.ID))
	})
	s.done.Events = len(s.events)
	return nil
}

// prepare reads an event's facts as the processor does, and keeps no body: many
// events may be in hand at once.
func (s *shadow) prepare(ctx context.Context, e *recorded) error {
	kind, known := s.adapter.Kind(e.row.EventType)
	policy := s.endpoint.PolicyFor(kind.Name, kind.Policy)
	switch {
	case e.row.Outcome == webhook.AlreadyApplied:
		s.done.Skipped[skipMarked]++
		return nil
	case e.row.Unwanted:
		e.now = string(webhook.Ignored)
		return nil
	case !known:
		e.now, e.code = nowRetry, "kind_unknown"
		return nil
	case policy == webhook.ByFetch:
		s.done.Skipped[skipFetch]++
		return nil
	case policy == webhook.BySequence:
		s.done.Skipped[skipSequence]++
		return nil
	}
	body, err := s.open(ctx, e.row)
	if errors.Is(err, ErrNoBody) {
		s.done.Skipped[skipBody]++
		return nil
	}
	if err != nil {
		return err
	}
	facts, err := s.adapter.Facts(kind, e.row.EventType, body)
	if err != nil {
		e.now, e.code = fated(err)
		return nil
	}
	e.event = webhook.Event{
		InboxID: e.row.ID, Run: e.row.Run, Tenant: e.row.Tenant, Provider: e.row.Provider, Endpoint: e.row.Endpoint,
		EventID: e.row.EventID, Type: e.row.EventType, Kind: kind.Name, Policy: policy, Facts: facts,
	}
	if e.handler, e.ready = s.o.Router.Handler(e.event); !e.ready {
		e.now, e.code = nowRetry, "handler_unknown"
	}
	return nil
}

// What becomes of an event besides the outcomes of a PROCESSED row.
const (
	nowFailed = "failed"
	nowRetry  = "retry"
)

// fated says what the processor makes of a fault, the first time that it is met.
func fated(err error) (now, code string) {
	if fault.KindOf(err) == fault.Permanent {
		return nowFailed, fault.CodeOf(err)
	}
	return nowRetry, fault.CodeOf(err)
}

func (s *shadow) open(ctx context.Context, row webhook.Inbox) ([]byte, error) {
	body, err := s.o.Bodies.Open(ctx, row.BodyID, row.Tenant, row.Digest)
	if err != nil && !errors.Is(err, ErrNoBody) {
		err = unreachable("the body store", err)
	}
	return body, err
}

// histories finds the objects whose rows are wholly the work of the events in
// hand, and lets those begin with nothing.
func (s *shadow) histories(ctx context.Context) error {
	byObject := map[string][]*recorded{}
	for i := range s.events {
		if e := &s.events[i]; e.ready {
			object := business.Key(e.event).PK
			byObject[object] = append(byObject[object], e)
		}
	}
	for object, events := range byObject {
		rows, err := s.partition(ctx, object)
		if err != nil {
			return err
		}
		if !whole(rows, events) {
			s.done.Partial++
			continue
		}
		s.done.Objects++
		s.stored[object], s.view.cleared[object] = rows, true
	}
	return nil
}

func (s *shadow) partition(ctx context.Context, object string) (map[webhook.Key]webhook.Item, error) {
	rows := map[webhook.Key]webhook.Item{}
	for row, err := range s.o.Business.Rows(ctx, object, "") {
		if err != nil {
			return nil, unreachable("the business table", err)
		}
		row = maps.Clone(row)
		sort, _ := row["sk"].(string)
		delete(row, "pk")
		delete(row, "sk")
		rows[webhook.Key{PK: object, SK: sort}] = row
	}
	return rows, nil
}

// whole reports whether an object's ledger tells of these events and of no others:
// an entry for each that was applied, and none besides. Where a handler keeps no
// ledger, nothing tells.
func whole(rows map[webhook.Key]webhook.Item, events []*recorded) bool {
	ours := map[webhook.Key]bool{}
	for _, e := range events {
		entry := business.LedgerEntryKey(e.event)
		ours[entry] = true
		if _, there := rows[entry]; e.row.Outcome == webhook.Applied && !there {
			return false
		}
	}
	prefix, _, _ := strings.Cut(business.LedgerEntryKey(events[0].event).SK, "#")
	entries := 0
	for k := range rows {
		switch {
		case k == business.TicketKey(events[0].event):
			return false // it was read at its provider as well
		case !strings.HasPrefix(k.SK, prefix+"#"):
		case !ours[k]:
			return false
		default:
			entries++
		}
	}
	return entries > 0 || len(rows) == 0
}

// compare handles one event, and tells if it ends otherwise than it did.
func (s *shadow) compare(ctx context.Context, e *recorded) error {
	if e.ready {
		body, err := s.open(ctx, e.row)
		switch {
		case errors.Is(err, ErrNoBody): // it went since it was read first
			s.done.Skipped[skipBody]++
			return nil
		case err != nil:
			return err
		}
		ev := e.event
		ev.Body = body
		if e.now, e.code, err = s.handle(ctx, e.handler, ev); err != nil {
			return err
		}
	}
	was := string(e.row.Outcome)
	switch {
	case e.now == "":
		return nil // skipped
	case e.now == was:
	case was == string(webhook.Applied) && e.now == string(webhook.Stale) && !s.view.cleared[business.Key(e.event).PK]:
		s.done.Undecided++
	default:
		s.done.Outcomes++
		s.tell(Difference{Event: &e.row, Recorded: was, Now: e.now, Code: e.code})
	}
	s.done.Compared++
	return nil
}

// plansMax is how often the processor plans an event under one claim.
const plansMax = 3

// handle plans an event and commits the plan to the overlay, as the processor
// would to the store.
func (s *shadow) handle(ctx context.Context, h business.Handler, ev webhook.Event) (now, code string, err error) {
	for range plansMax {
		plan, err := planned(ctx, h, ev, s.view)
		var verdict webhook.Verdict
		if err == nil && plan.Outcome == webhook.Applied {
			verdict, err = s.view.commit(ctx, plan.Actions)
		}
		switch {
		case s.view.failed != nil:
			return "", "", unreachable("the business table", s.view.failed)
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err != nil:
			now, code = fated(err)
			return now, code, nil
		case plan.Outcome != webhook.Applied:
			return string(plan.Outcome), "", nil
		}
		switch verdict {
		case webhook.Committed:
			return string(webhook.Applied), "", nil
		case webhook.NotNewer:
			return string(webhook.Stale), "", nil
		case webhook.RuleRefused:
			ev.DomainRefused = true
		case webhook.RivalWrote, webhook.ClaimLost, webhook.MarkExists, webhook.TurnMoved:
		}
	}
	return nowRetry, "object_contended", nil
}

// planned runs the handler. A panic is the event's own failure, as in the processor.
func planned(ctx context.Context, h business.Handler, ev webhook.Event, r business.Reader) (plan webhook.Plan, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault.New(fault.Permanent, "handler_panic", fmt.Errorf("a %T", v))
		}
	}()
	return h.Plan(ctx, ev, r)
}

// rows compares what was made of each whole object with what is stored.
func (s *shadow) rows() {
	made := map[string]map[webhook.Key]webhook.Item{}
	for k, row := range s.view.rows {
		if s.view.cleared[k.PK] && row != nil {
			if made[k.PK] == nil {
				made[k.PK] = map[webhook.Key]webhook.Item{}
			}
			made[k.PK][k] = row
		}
	}
	for _, object := range slices.Sorted(maps.Keys(s.stored)) {
		s.object(s.stored[object], made[object])
	}
}

func (s *shadow) object(stored, made map[webhook.Key]webhook.Item) {
	keys := map[webhook.Key]bool{}
	for k := range stored {
		keys[k] = true
	}
	for k := range made {
		keys[k] = true
	}
	for _, k := range slices.SortedFunc(maps.Keys(keys), func(a, b webhook.Key) int { return strings.Compare(a.SK, b.SK) }) {
		was, there := stored[k]
		is, too := made[k]
		switch {
		case !there:
			s.differs(Difference{Key: k, Made: is})
		case !too:
			s.differs(Difference{Key: k, Stored: was})
		default:
			s.row(k, was, is)
		}
	}
}

func (s *shadow) row(k webhook.Key, was, is webhook.Item) {
	names := map[string]bool{}
	for name := range was {
		names[name] = true
	}
	for name := range is {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !same(was[name], is[name]) {
			s.differs(Difference{Key: k, Attribute: name, Stored: was[name], Made: is[name]})
		}
	}
}

func (s *shadow) differs(d Difference) {
	s.done.Rows++
	s.tell(d)
}
