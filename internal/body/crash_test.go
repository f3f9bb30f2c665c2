package body_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"dakghar/internal/body"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

var errExhausted = errors.New("the body never came to rest")

// accept is step (a) of Accept for an event without an inbox row: put; if the
// body exists, renew it; if it is gone by then, put again.
func accept(s *body.Store, p webhook.Body) error {
	for range 3 {
		placed, err := s.Put(ctx, p)
		if err != nil || !placed.Existed {
			return err
		}
		if _, ok, err := s.Renew(ctx, p); err != nil || ok {
			return err
		}
	}
	return errExhausted
}

// The states that an event's body can be found in.
var beginnings = map[string]func(s *body.Store, raw []byte) error{
	"nothing there": func(*body.Store, []byte) error { return nil },
	"a body that is over": func(s *body.Store, raw []byte) error {
		old := request("old", "old", raw)
		old.At = start.Add(-month - 2*time.Hour)
		return accept(s, old)
	},
	"a body of a request that died": func(s *body.Store, raw []byte) error {
		_, err := s.Put(ctx, request("1", "dead", raw))
		return err
	},
}

// What may happen around any call of the request.
var happenings = map[string]func(w *world, rival *body.Store, raw []byte) error{
	"the sweep comes": func(w *world, _ *body.Store, _ []byte) error { w.sweep(start); return nil },
	"a rival with the same bytes is accepted": func(_ *world, rival *body.Store, raw []byte) error {
		return accept(rival, request("2", "rival", raw))
	},
	"a rival comes and takes its body away": func(_ *world, rival *body.Store, raw []byte) error {
		p := request("2", "rival", raw)
		if err := accept(rival, p); err != nil {
			return err
		}
		return rival.Remove(ctx, p.ID, p.PutID)
	},
	"the old request takes its body away": func(_ *world, rival *body.Store, raw []byte) error {
		return rival.Remove(ctx, request("old", "old", raw).ID, "old")
	},
}

// accepted checks the property: whoever was accepted has its bytes for its whole life.
func accepted(t *testing.T, w *world, p webhook.Body) {
	t.Helper()
	for _, putID := range []string{"old", "dead", "rival"} {
		if err := w.store().Remove(ctx, p.ID, putID); err != nil {
			t.Fatal(err)
		}
	}
	w.sweep(w.store().Expiry(p.At))
	opens(t, w.store(), p)
}

// explore runs the story once for each call that it makes, until it makes fewer.
func explore(t *testing.T, story func(t *testing.T, w *world, raw []byte, at int)) {
	for _, b := range []struct {
		name string
		raw  []byte
	}{{"inline", []byte("raw")}, {"object", random(64 << 10)}} {
		for beginning, begin := range beginnings {
			for at, reached := 0, true; reached; at++ {
				ok := t.Run(fmt.Sprintf("%s, %s, call %d", b.name, beginning, at), func(t *testing.T) {
					w := newWorld()
					if err := begin(w.store(), b.raw); err != nil {
						t.Fatal(err)
					}
					w.calls = nil
					story(t, w, b.raw, at)
					reached = len(w.calls) > at
				})
				reached = reached && ok
			}
		}
	}
}

// Proves A6, T4: a rival or the sweep beside any call of a request takes no accepted event's bytes.
func TestAnAcceptedEventHasItsBytesWhateverHappensBesideIt(t *testing.T) {
	for happening, happen := range happenings {
		t.Run(happening, func(t *testing.T) {
			explore(t, func(t *testing.T, w *world, raw []byte, at int) {
				rival := w.store()
				w.before = func(_ context.Context, n int, _ string) error {
					if n != at {
						return nil
					}
					w.before = nil
					return happen(w, rival, raw)
				}
				p := request("1", "mine", raw)
				if err := accept(w.store(), p); err != nil {
					t.Fatal(err)
				}
				w.before = nil
				accepted(t, w, p)
			})
		})
	}
}

// Proves A2, A6, T4: a request that dies, or loses a reply, or whose write comes
// late, at any call, is not acknowledged; its repeat is, and has its bytes.
func TestARepeatConvergesAfterAFaultAtAnyCall(t *testing.T) {
	faults := map[string]func(w *world, at int){
		"before": func(w *world, at int) {
			w.before = func(_ context.Context, n int, _ string) error { return lostAt(n, at) }
		},
		"after": func(w *world, at int) { w.after = func(n int, _ string) error { return lostAt(n, at) } },
		"late":  func(w *world, at int) { w.lateAt = at + 1 },
	}
	for when, install := range faults {
		t.Run(when, func(t *testing.T) {
			explore(t, func(t *testing.T, w *world, raw []byte, at int) {
				install(w, at)
				err := accept(w.store(), request("1", "first", raw))
				if len(w.calls) <= at { // the request makes fewer calls: nothing was injected
					check(t, "the first", err, error(nil))
					return
				}
				if fault.KindOf(err) != fault.Ours || errors.Is(err, errLost) {
					t.Errorf("the fault came out as %v", err)
				}
				again := request("1", "again", raw)
				again.At = start.Add(time.Minute)
				if err := accept(w.store(), again); err != nil {
					t.Fatal(err)
				}
				w.land()
				accepted(t, w, again)
			})
		})
	}
}

func lostAt(n, at int) error {
	if n == at {
		return errLost
	}
	return nil
}

// Every call run twice, as the SDK does when a reply is lost, answers as if run once.
func TestEveryCallRunTwice(t *testing.T) {
	for _, raw := range [][]byte{[]byte("raw"), random(64 << 10)} {
		w := newWorld()
		w.twice = true
		s, p := w.store(), request("1", "put1", raw)
		check(t, "put", put(t, s, p), webhook.Placed{ExpiresAt: told, FirstInbox: "in_1"})
		opens(t, w.store(), p)
		_, ok, err := s.Renew(ctx, request("2", "put2", raw))
		check(t, "renew", [2]any{ok, err}, [2]any{true, nil})
		opens(t, w.store(), p)
		check(t, "remove", s.Remove(ctx, p.ID, "put2"), nil)
		_, err = open(w.store(), p)
		check(t, "then", errors.Is(err, body.ErrMissing), true)
	}
}

// Proves L2: a store that hangs costs a caller no more than its context.
func TestAStalledStoreEndsWithTheContext(t *testing.T) {
	for _, op := range []string{"GenerateDataKey", "PutItem key#", "PutItem bd_", "GetItem bd_", "PutObject", "UpdateItem", "DeleteItem", "DeleteObject", "Decrypt", "GetItem key#", "GetObject"} {
		t.Run(op, func(t *testing.T) { stall(t, op) })
	}
}
