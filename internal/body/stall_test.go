package body_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// stall runs every operation that reaches the call while the call hangs, and
// wants each to end with its own context, as our fault, within half a second.
func stall(t *testing.T, op string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := request("1", "put1", random(64<<10))
		put(t, w.store(), p)
		w.calls = nil
		w.before = func(ctx context.Context, _ int, called string) error {
			if strings.HasPrefix(called, op) {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		bounded := func(run func(ctx context.Context) error) {
			limited, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			begun := time.Now()
			err := run(limited)
			if took := time.Since(begun); took > 500*time.Millisecond {
				t.Errorf("took %s", took)
			}
			if err != nil && (fault.KindOf(err) != fault.Ours || !strings.HasSuffix(fault.CodeOf(err), "_timeout")) {
				t.Errorf("came out as %s: %v", fault.KindOf(err), err)
			}
		}
		bounded(func(ctx context.Context) error {
			_, err := w.store().Put(ctx, request("2", "put2", random(65<<10)))
			return err
		})
		bounded(func(ctx context.Context) error {
			_, err := w.store().Open(ctx, p.ID, p.Tenant, digestOf(p))
			return err
		})
		bounded(func(ctx context.Context) error { _, _, err := w.store().Renew(ctx, p); return err })
		bounded(func(ctx context.Context) error { return w.store().Remove(ctx, p.ID, "put1") })
		if w.count(op) == 0 {
			t.Errorf("nothing called %s", op)
		}
		time.Sleep(time.Second) // calls for keys outlive their callers, by less than this
		synctest.Wait()
	})
}

func digestOf(b webhook.Body) webhook.Digest { return webhook.DigestOf(b.Raw) }
