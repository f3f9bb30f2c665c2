package body_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"dakghar/internal/body"
	"dakghar/internal/webhook"
)

// Proves D6: an erased body is gone from the table and the bucket; whoever dies at
// any call leaves a row that the same again finishes.
func TestErasingABodyTakesItsRowAndItsObject(t *testing.T) {
	for name, raw := range map[string][]byte{"inline": sample(2 << 10), "in the bucket": random(100 << 10)} {
		for n := range 9 {
			w := newWorld()
			p := request("1", "p", raw)
			put(t, w.store(), p)
			first := len(w.calls)
			died := false
			w.after = func(at int, _ string) error {
				if at == first+n {
					died = true
					return errLost
				}
				return nil
			}
			gone, err := w.store().Erase(ctx, p.ID, "p")
			w.after = nil
			if died {
				gone, err = w.store().Erase(ctx, p.ID, "p")
			}
			if err != nil || !gone {
				t.Errorf("%s, call %d: gone %v, error %v", name, n, gone, err)
			}
			if _, err := open(w.store(), p); !errors.Is(err, body.ErrMissing) || len(w.objects) > 0 {
				t.Errorf("%s, call %d: opens with %v, %d objects are left", name, n, err, len(w.objects))
			}
		}
	}
}

// Proves D6: a rival that renews the bytes, before the erasing or at any call of it, keeps them.
func TestErasingLeavesWhatARivalRenewed(t *testing.T) {
	for name, raw := range map[string][]byte{"inline": sample(2 << 10), "in the bucket": random(100 << 10)} {
		for n := range 5 {
			w := newWorld()
			p, rival := request("1", "p", raw), request("2", "rival", raw)
			put(t, w.store(), p)
			first, came := len(w.calls), false
			w.before = func(_ context.Context, at int, _ string) error {
				if at == first+n && !came {
					came = true
					return accept(w.store(), rival)
				}
				return nil
			}
			gone, err := w.store().Erase(ctx, p.ID, "p")
			w.before = nil
			if !came {
				if err := accept(w.store(), rival); err != nil {
					t.Fatal(err)
				}
			} else if gone || err != nil {
				t.Errorf("%s, call %d: gone %v, error %v; want it left", name, n, gone, err)
			}
			opens(t, w.store(), rival)
		}
	}
}

func TestWhoStoredABody(t *testing.T) {
	w := newWorld()
	s, p, q := w.store(), request("1", "p", sample(999)), request("2", "q", sample(999))
	look := func(want webhook.Kept, wantThere bool) {
		t.Helper()
		got, there, err := s.Look(ctx, p.ID)
		if err != nil || there != wantThere {
			t.Errorf("there %v, error %v", there, err)
		}
		check(t, "kept", got, want)
	}
	look(webhook.Kept{}, false)
	put(t, s, p)
	look(webhook.Kept{PutID: "p", First: "in_1"}, true)
	q.At = start.Add(time.Hour)
	if _, ok, err := s.Renew(ctx, q); !ok || err != nil {
		t.Fatalf("renewed %v, error %v", ok, err)
	}
	look(webhook.Kept{PutID: "q", First: "in_1", RenewedAt: start.Add(time.Hour).Truncate(time.Second)}, true)
}

// Proves D6: the copy of an event under legal hold opens when body and key are
// over, whatever became of them; whoever dies while making or dropping it does the
// same again.
func TestAHeldCopyOutlivesItsBody(t *testing.T) {
	for name, raw := range map[string][]byte{"one piece": sample(2 << 10), "three pieces": random(1 << 20)} {
		for n := range 16 {
			w := newWorld()
			s, p := w.store(), request("1", "p", raw)
			put(t, s, p)
			dies := func(do func() error) {
				t.Helper()
				first, died := len(w.calls), false
				w.after = func(at int, _ string) error {
					if died = died || at == first+n; died {
						return errLost
					}
					return nil
				}
				err := do()
				w.after = nil
				if died {
					err = do()
				}
				if err != nil {
					t.Fatalf("%s, call %d: %v", name, n, err)
				}
			}
			dies(func() error { return s.HoldCopy(ctx, p.InboxID, p.ID) })
			if gone, err := s.Erase(ctx, p.ID, "p"); err != nil || !gone {
				t.Fatalf("erase: %v, %v", gone, err)
			}
			for id := range w.items {
				if !strings.HasPrefix(id, "hold#") {
					delete(w.items, id) // the sweep has no clock for rows without a life
				} else if w.items[id]["x"] != nil {
					t.Errorf("%s has a life", id)
				}
			}
			got, err := w.store().OpenHeld(ctx, p.InboxID, p.ID, p.Tenant, webhook.DigestOf(raw))
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s, call %d: %d bytes, error %v", name, n, len(got), err)
			}
			dies(func() error { return s.DropCopy(ctx, p.InboxID) })
			if len(w.items) > 0 {
				t.Errorf("%s, call %d: %d rows are left", name, n, len(w.items))
			}
			if _, err := s.OpenHeld(ctx, p.InboxID, p.ID, p.Tenant, webhook.DigestOf(raw)); !errors.Is(err, body.ErrMissing) {
				t.Errorf("opens with %v", err)
			}
		}
	}
	w := newWorld()
	if err := w.store().HoldCopy(ctx, "in_1", "bd_1"); !errors.Is(err, body.ErrMissing) {
		t.Errorf("a copy of nothing: %v", err)
	}
}

// A copy that was cut short, and whose body another request has renewed since, is
// made anew of one sealing.
func TestAHeldCopyIsOfOneSealing(t *testing.T) {
	raw := random(1 << 20)
	w := newWorld()
	s, p, q := w.store(), request("1", "p", raw), request("2", "q", raw)
	put(t, s, p)
	pieces := 0
	w.before = func(_ context.Context, _ int, op string) error {
		if strings.HasPrefix(op, "PutItem hold#") {
			if pieces++; pieces > 1 {
				return errLost
			}
		}
		return nil
	}
	if err := s.HoldCopy(ctx, p.InboxID, p.ID); err == nil {
		t.Fatal("it did not die")
	}
	w.before = nil
	if _, ok, err := s.Renew(ctx, q); !ok || err != nil {
		t.Fatalf("renewed %v, error %v", ok, err)
	}
	if err := s.HoldCopy(ctx, p.InboxID, p.ID); err != nil {
		t.Fatal(err)
	}
	got, err := s.OpenHeld(ctx, p.InboxID, p.ID, p.Tenant, webhook.DigestOf(raw))
	if err != nil || !bytes.Equal(got, raw) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
}
