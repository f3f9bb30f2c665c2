package body_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"dakghar/internal/body"
	"dakghar/internal/webhook"
)

// A body that many ask for is read once, while it is remembered; another tenant
// or another digest is another question.
func TestABodyIsReadOnceForManyWhoAsk(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.store()
	p := request("1", "p1", sample(2000))
	put(t, s, p)
	now := start
	r := &body.Recent{Store: s, BytesMax: 1 << 20, Now: func() time.Time { return now }}
	read := func() int { return w.count("GetItem") }
	before := read()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if raw, err := r.Open(ctx, p.ID, p.Tenant, webhook.DigestOf(p.Raw)); err != nil || !bytes.Equal(raw, p.Raw) {
				t.Errorf("%d bytes, %v", len(raw), err)
			}
		})
	}
	wg.Wait()
	if n := read() - before; n != 1 {
		t.Errorf("read %d times, want once", n)
	}
	for _, wrong := range []func() ([]byte, error){
		func() ([]byte, error) { return r.Open(ctx, p.ID, "another", webhook.DigestOf(p.Raw)) },
		func() ([]byte, error) { return r.Open(ctx, p.ID, p.Tenant, webhook.DigestOf([]byte("another"))) },
		func() ([]byte, error) { return r.Open(ctx, "bd_none", p.Tenant, webhook.DigestOf(p.Raw)) },
	} {
		if raw, err := wrong(); err == nil {
			t.Errorf("opened: %d bytes", len(raw))
		}
	}
	now = now.Add(body.RecentAge)
	before = read()
	if _, err := r.Open(ctx, p.ID, p.Tenant, webhook.DigestOf(p.Raw)); err != nil || read() != before+1 {
		t.Errorf("after its time: %v, read %d times, want once more", err, read()-before)
	}
}

// What is remembered is bounded: the oldest goes, and what is larger than all is
// not kept. A failure is not remembered.
func TestWhatIsRememberedOfBodiesIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.store()
	r := &body.Recent{Store: s, BytesMax: 250, Now: func() time.Time { return start }}
	all := map[string]webhook.Body{}
	for name, size := range map[string]int{"a": 100, "b": 101, "c": 102, "large": 251} {
		all[name] = request(name, "p"+name, []byte(strings.Repeat(name[:1], size)))
		put(t, s, all[name])
	}
	reads := func(name string) int {
		before := w.count("GetItem")
		if _, err := r.Open(ctx, all[name].ID, all[name].Tenant, webhook.DigestOf(all[name].Raw)); err != nil {
			t.Fatal(err)
		}
		return w.count("GetItem") - before
	}
	for i, step := range []struct {
		name string
		want int
	}{{"a", 1}, {"b", 1}, {"a", 0}, {"c", 1}, {"b", 0}, {"a", 1}, {"large", 1}, {"large", 1}, {"c", 0}} {
		if got := reads(step.name); got != step.want {
			t.Errorf("step %d: %s was read %d times, want %d", i, step.name, got, step.want)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Open(gone, all["b"].ID, all["b"].Tenant, webhook.DigestOf(all["b"].Raw)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has given up: %v", err)
	}
}
