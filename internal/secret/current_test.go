package secret_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/secret"
	"dakghar/internal/webhook"
)

// looked is what a caller of Current sees.
type looked struct {
	Version webhook.KeyVersion
	Read    read
}

func current(t *testing.T, c *secret.Cache, e webhook.Endpoint) looked {
	t.Helper()
	v, value, err := c.Current(t.Context(), e)
	return looked{Version: v, Read: got(value, err)}
}

var throttled = looked{Read: read{Code: "secret_lookup_throttled", Kind: fault.Ours}}

// Proves S2: a version put there by other means is found, and stays usable
// between look-ups until the registry lists it.
func TestANewCurrentVersionIsFoundAndRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		f.set(name, "v2", "two")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		two := looked{Version: "v2", Read: read{Value: "two"}}
		for range 9_000 {
			check(t, "each request until it is adopted", current(t, c, e), two)
			c.Fruitful()
			time.Sleep(10 * time.Millisecond)
		}
		check(t, "look-ups in these 90 seconds", f.count("GetSecretValue"), 9)

		e.Keys = append(e.Keys, webhook.TrustedKey{Version: "v2"})
		check(t, "its value, once listed", got(c.Secret(t.Context(), e, "v2")), read{Value: "two"})
		check(t, "calls for that", f.count("GetSecretValue"), 9)
		check(t, "a look-up, once listed", current(t, c, e), looked{Version: "v2", Read: read{Code: "secret_nothing_new", Kind: fault.Ours}})
	})
}

// Proves S5, V11: a version that was found serves while the store is down, to its hard age.
func TestAFoundVersionServesToItsHardAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v2", "two")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		two := looked{Version: "v2", Read: read{Value: "two"}}
		check(t, "found", current(t, c, e), two)
		f.before = down
		time.Sleep(time.Hour - time.Second)
		check(t, "when the look-up fails", current(t, c, e), two)
		check(t, "until the next one", current(t, c, e), two)
		time.Sleep(time.Second)
		check(t, "at the hard age", current(t, c, e), throttled)
	})
}

// A version that the store no longer calls current is not offered from memory.
func TestAFoundVersionThatWasTakenBackIsForgotten(t *testing.T) {
	for what, change := range map[string]func(f *fake){
		"the listed one is current again": func(f *fake) { f.set(name, "v1", "one") },
		"the secret is gone":              func(f *fake) { delete(f.secrets, name) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.set(name, "v2", "two")
				c := secret.New(secret.Config{Now: time.Now, Client: f})
				e := endpoint("pay", "v1")
				check(t, "found", current(t, c, e), looked{Version: "v2", Read: read{Value: "two"}})
				change(f)
				time.Sleep(10 * time.Second)
				check(t, "looked up again", current(t, c, e).Read.Value, "")
				check(t, "afterwards", current(t, c, e), throttled)
			})
		})
	}
}

// A retired version must never be trusted again, whatever the store calls current. Proves S4.
func TestARetiredCurrentVersionHasNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		f.set(name, "v2", "leaked")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		check(t, "before", current(t, c, e), looked{Version: "v2", Read: read{Value: "leaked"}})
		e.Retired = []webhook.KeyVersion{"v2"}
		check(t, "retired a moment later, from memory", current(t, c, e), throttled)
		time.Sleep(time.Second)
		check(t, "and by a look-up", current(t, c, e), looked{Version: "v2", Read: read{Code: "secret_nothing_new", Kind: fault.Ours}})
	})
}

// A flood of forged signatures over many endpoints makes a bounded, falling number of look-ups.
func TestForgedSignaturesNeverFloodTheStore(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setUp func(f *fake)
		want  int // calls in ten minutes: at 0, 2, 6, 14, 30, 62, then 60 s apart … of 1 s doubled after each
	}{
		{name: "nothing new", setUp: func(*fake) {}, want: 14},
		{name: "no such secret", setUp: func(f *fake) { clear(f.secrets) }, want: 14},
		{name: "the store is down", setUp: func(f *fake) { f.before = down }, want: 14},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				endpoints := make([]webhook.Endpoint, 100)
				for i := range endpoints {
					endpoints[i] = endpoint(fmt.Sprint("e", i), "v1")
					f.set(endpoints[i].Secret, "v1", "one")
				}
				tt.setUp(f)
				c := secret.New(secret.Config{Now: time.Now, Client: f})
				begun := time.Now()
				for i := 0; time.Since(begun) < 10*time.Minute; i++ {
					if _, v, err := c.Current(t.Context(), endpoints[i%len(endpoints)]); err == nil {
						t.Fatalf("Current = %v, want an error", v)
					}
					c.Fruitless()
					time.Sleep(100 * time.Millisecond)
				}
				check(t, "calls in ten minutes", f.count("GetSecretValue"), tt.want)
			})
		})
	}
}

func TestTheLookUpPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		other := endpoint("other", "v1")
		f.set(other.Secret, "v1", "x")
		f.set(other.Secret, "v2", "new")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		nothing := looked{Version: "v1", Read: read{Code: "secret_nothing_new", Kind: fault.Ours}}

		check(t, "the first", current(t, c, endpoint("pay", "v1")), nothing)
		check(t, "another endpoint at once", current(t, c, other), throttled)
		time.Sleep(2*time.Second - 1)
		check(t, "just before two seconds", current(t, c, other), throttled)
		time.Sleep(1)
		check(t, "two seconds after a fruitless one", current(t, c, other), looked{Version: "v2", Read: read{Value: "new"}})
		c.Fruitful()
		time.Sleep(time.Second)
		check(t, "one second after a fruitful one", current(t, c, endpoint("pay", "v1")), nothing)
	})
}

// A look-up in flight blocks nobody, and many reports of one failure count once.
func TestALookUpInFlightBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.before = stalled
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		begun := time.Now()
		done := make(chan looked, 1)
		go func() { done <- current(t, c, endpoint("pay", "v1")) }()
		synctest.Wait()
		for range 500 {
			check(t, "the others", current(t, c, endpoint("pay", "v1")), throttled)
			c.Fruitless()
		}
		check(t, "their wait", time.Since(begun), time.Duration(0))
		check(t, "the one", <-done, looked{Read: read{Code: "secret_timeout", Kind: fault.Ours}})
		time.Sleep(1700 * time.Millisecond)
		f.before = func(context.Context, string, string) error { return errors.New("dial") }
		check(t, "after two seconds, not more", current(t, c, endpoint("pay", "v1")), looked{Read: read{Code: "secret_unreachable", Kind: fault.Ours}})
	})
}
