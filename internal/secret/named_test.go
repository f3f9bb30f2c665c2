package secret_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/secret"
)

// said is what a caller of Text sees.
type said struct {
	Text string
	Code string
	Kind fault.Kind
}

func text(t *testing.T, n *secret.Named, name string) said {
	t.Helper()
	return answer(n.Text(t.Context(), name))
}

func answer(value string, err error) said {
	if err == nil {
		return said{Text: value}
	}
	return said{Text: value, Code: fault.CodeOf(err), Kind: fault.KindOf(err)}
}

const apiKey = "stack/api/pay"

// Proves S1: a credential is read once in five minutes, and a new one is used
// within that time.
func TestANamedSecretIsReadAgainAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(apiKey, "v1", "one")
		n := secret.NewNamed(secret.Config{Now: time.Now, Client: f})
		for range 299 {
			check(t, "the first", text(t, n, apiKey), said{Text: "one"})
			time.Sleep(time.Second)
		}
		check(t, "calls so far", f.count("GetSecretValue"), 1)
		f.set(apiKey, "v2", "two")
		time.Sleep(time.Second)
		check(t, "the second", text(t, n, apiKey), said{Text: "two"})
		check(t, "calls in all", f.count("GetSecretValue"), 2)
	})
}

// Proves S1: a credential that was refused is asked for anew, once in half a minute
// however often it is refused, and whoever reads it after that has the new one.
func TestANamedSecretThatWasRefusedIsAskedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(apiKey, "v1", "one")
		n := secret.NewNamed(secret.Config{Now: time.Now, Client: f})
		check(t, "the first", text(t, n, apiKey), said{Text: "one"})
		f.set(apiKey, "v2", "two")
		for range 30 {
			check(t, "within half a minute", answer(n.Newest(t.Context(), apiKey)), said{Text: "one"})
			time.Sleep(time.Second)
		}
		check(t, "calls so far", f.count("GetSecretValue"), 1)
		check(t, "whoever only reads", text(t, n, apiKey), said{Text: "one"})
		check(t, "after half a minute", answer(n.Newest(t.Context(), apiKey)), said{Text: "two"})
		check(t, "whoever reads then", text(t, n, apiKey), said{Text: "two"})
		check(t, "calls in all", f.count("GetSecretValue"), 2)
	})
}

// Proves S5: while the store is silent, a credential that was read serves for an
// hour and no longer, and the store is not asked at every use.
func TestANamedSecretServesWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(apiKey, "v1", "one")
		n := secret.NewNamed(secret.Config{Now: time.Now, Client: f})
		check(t, "at first", text(t, n, apiKey), said{Text: "one"})
		f.before = func(context.Context, string, string) error { return errors.New("silence") }
		for range 3599 {
			time.Sleep(time.Second)
			check(t, "within the hour", text(t, n, apiKey), said{Text: "one"})
		}
		if calls := f.count("GetSecretValue"); calls < 600 || calls > 900 {
			t.Errorf("%d calls in 55 minutes of silence, want one in about 4 s", calls)
		}
		time.Sleep(time.Second)
		check(t, "after the hour", text(t, n, apiKey), said{Code: "secret_unreachable", Kind: fault.Ours})
		f.before = nil
		time.Sleep(4 * time.Second)
		check(t, "when it speaks again", text(t, n, apiKey), said{Text: "one"})
	})
}

// A secret that is gone is gone at once, and its absence is not asked about at every use.
func TestANamedSecretThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		n := secret.NewNamed(secret.Config{Now: time.Now, Client: f})
		gone := said{Code: "secret_no_version", Kind: fault.Ours}
		for range 100 {
			check(t, "before it is made", text(t, n, apiKey), gone)
		}
		check(t, "calls", f.count("GetSecretValue"), 1)
		f.set(apiKey, "v1", "one")
		time.Sleep(time.Second)
		check(t, "once it is made", text(t, n, apiKey), said{Text: "one"})
		f.drop(apiKey, "v1")
		time.Sleep(5 * time.Minute)
		check(t, "once it is gone", text(t, n, apiKey), gone)
	})
}

// One call serves all who wait for it, and one who leaves takes nobody with him.
func TestOneCallForANamedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(apiKey, "v1", "one")
		enter := make(chan struct{})
		f.before = func(context.Context, string, string) error { <-enter; return nil }
		n := secret.NewNamed(secret.Config{Now: time.Now, Client: f, CallTimeout: time.Hour})

		ctx, leave := context.WithCancel(t.Context())
		var left error
		var waiting sync.WaitGroup
		waiting.Go(func() { _, left = n.Text(ctx, apiKey) })
		for range 50 {
			waiting.Go(func() { check(t, "a waiter", text(t, n, apiKey), said{Text: "one"}) })
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(enter)
		waiting.Wait()
		check(t, "who left", said{Code: fault.CodeOf(left), Kind: fault.KindOf(left)}, said{Code: "secret_timeout", Kind: fault.Ours})
		check(t, "calls", f.count("GetSecretValue"), 1)
	})
}

// The number of values is bounded, and nothing of them is printed.
func TestNamedSecretsAreBoundedAndSilent(t *testing.T) {
	f := newFake()
	n := secret.NewNamed(secret.Config{Now: time.Now, Client: f, EntriesMax: 2})
	for _, name := range []string{"a", "b", "c", "b", "c", "a"} {
		f.set(name, "v1", "hunter2-"+name)
		check(t, name, text(t, n, name), said{Text: "hunter2-" + name})
	}
	check(t, "calls: the one that was used longest ago went", f.count("GetSecretValue"), 4)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if printed := fmt.Sprintf(verb, n); strings.Contains(printed, "hunter2") || printed != "[redacted]" {
			t.Errorf("%s prints %s", verb, printed)
		}
	}
}
