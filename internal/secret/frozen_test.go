package secret_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dakghar/internal/secret"
)

// Proves S5: a process that Lambda lets stand still in the middle of a call
// remembers nothing against the store. The call is made again at the thaw, and
// the value serves on.
func TestAFrozenCallIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		var ahead atomic.Int64 // what the clock gained while the process stood still
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c := secret.New(secret.Config{Now: now, Client: f})
		e := endpoint("pay", "v1")
		if v, err := c.Secret(t.Context(), e, "v1"); string(v.Bytes()) != "one" || err != nil {
			t.Fatalf("first read: %v", err)
		}
		ahead.Store(int64(6 * time.Minute))
		freezes := true
		f.before = func(ctx context.Context, _, _ string) error {
			if !freezes {
				return nil
			}
			freezes = false
			ahead.Add(int64(70 * time.Minute)) // the thaw comes after the hard age
			<-ctx.Done()
			return ctx.Err()
		}
		if _, err := c.Secret(t.Context(), e, "v1"); err != nil { // starts the refresh
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		v, err := c.Secret(t.Context(), e, "v1")
		if string(v.Bytes()) != "one" || err != nil {
			t.Errorf("after the thaw: %v", err)
		}
	})
}
