package secret_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/secret"
	"dakghar/internal/webhook"
)

const name = "stack/endpoint/pay"

// stalled answers when the caller gives up, as a hanging store does.
func stalled(ctx context.Context, _, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func down(context.Context, string, string) error { return &types.InternalServiceError{} }

// read is what a caller of Secret sees, as one comparable value.
type read struct {
	Value, Code string
	Kind        fault.Kind
}

func got(v secret.Value, err error) read {
	if err != nil {
		return read{Value: string(v.Bytes()), Code: fault.CodeOf(err), Kind: fault.KindOf(err)}
	}
	return read{Value: string(v.Bytes())}
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Proves S1, S5, V11: what each age serves while the store answers and while it is down.
func TestAgesWhileTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		ask := func() read { v, err := c.Secret(t.Context(), e, "v1"); synctest.Wait(); return got(v, err) }

		check(t, "first use", ask(), read{Value: "one"})
		time.Sleep(5*time.Minute - 1)
		check(t, "just under the soft age", ask(), read{Value: "one"})
		check(t, "calls under the soft age", f.count("GetSecretValue"), 1)
		time.Sleep(1)
		check(t, "at the soft age", ask(), read{Value: "one"})
		check(t, "calls at the soft age", f.count("GetSecretValue"), 2)
		check(t, "age after a confirmation", c.Age(e, "v1"), time.Duration(0))

		f.before = down
		time.Sleep(time.Hour - 1)
		check(t, "just under the hard age, store down", ask(), read{Value: "one"})
		check(t, "age", c.Age(e, "v1"), time.Hour-1)
		check(t, "oldest", c.Oldest(), time.Hour-1)
		time.Sleep(1)
		check(t, "at the hard age, store down", ask(), read{Code: "secret_unavailable", Kind: fault.Ours})
		check(t, "age of nothing", c.Age(e, "v1"), time.Duration(0))

		f.before = nil
		time.Sleep(4 * time.Second)
		check(t, "store back", ask(), read{Value: "one"})
	})
}

// Proves S5: an outage finds a used entry young, however long ago it was first read.
func TestAUsedVersionStaysConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		for range 24 * 60 {
			if v, err := c.Secret(t.Context(), e, "v1"); err != nil || string(v.Bytes()) != "one" {
				t.Fatalf("Secret = %v, %v", got(v, err), err)
			}
			synctest.Wait()
			if age := c.Age(e, "v1"); age >= 6*time.Minute {
				t.Fatalf("age %s after a use each minute", age)
			}
			time.Sleep(time.Minute)
		}
		check(t, "calls in a day of one use a minute", f.count("GetSecretValue"), 24*60/5)
	})
}

// Proves S4, V11: a definite no at the soft age drops the value; it is asked
// about again, each time after a longer pause.
func TestAVersionThatTheStoreLostIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		ask := func() read { v, err := c.Secret(t.Context(), e, "v1"); synctest.Wait(); return got(v, err) }
		ask()
		f.drop(name, "v1")
		time.Sleep(5 * time.Minute)
		check(t, "the use that asks", ask(), read{Value: "one"})
		no := read{Code: "secret_no_version", Kind: fault.Ours}
		check(t, "the next one", ask(), no)
		before := f.count("GetSecretValue")
		for range 60_000 {
			check(t, "a minute of a thousand uses a second", ask(), no)
			time.Sleep(time.Millisecond)
		}
		check(t, "calls in that minute", f.count("GetSecretValue")-before, 7)
		f.set(name, "v1", "one")
		time.Sleep(30 * time.Second)
		check(t, "put back", ask(), read{Value: "one"})
	})
}

// Proves S1: hundreds of first uses make one call, and each caller's context bounds his wait alone.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		release := make(chan struct{})
		f.before = func(ctx context.Context, _, _ string) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")

		impatient, cancel := context.WithCancel(t.Context())
		first := make(chan read, 1)
		go func() { first <- got(c.Secret(impatient, e, "v1")) }()
		synctest.Wait()
		var wg sync.WaitGroup
		results := make(chan read, 500)
		for range 500 {
			wg.Go(func() { results <- got(c.Secret(t.Context(), e, "v1")) })
		}
		synctest.Wait()
		cancel()
		check(t, "the one who left", <-first, read{Code: "secret_timeout", Kind: fault.Ours})
		close(release)
		wg.Wait()
		close(results)
		for r := range results {
			check(t, "one who waited", r, read{Value: "one"})
		}
		check(t, "calls", f.count("GetSecretValue"), 1)
	})
}

// Proves L2, S5: a stalled store costs a caller the call's own bound, and no other endpoint anything.
func TestAStalledCallBlocksNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		f.set("stack/endpoint/other", "v1", "other")
		f.before = func(ctx context.Context, op, secret string) error {
			if secret == name {
				return stalled(ctx, op, secret)
			}
			return nil
		}
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		begun := time.Now()
		waiting := make(chan read, 1)
		go func() { waiting <- got(c.Secret(t.Context(), endpoint("pay", "v1"), "v1")) }()
		synctest.Wait()
		check(t, "another endpoint", got(c.Secret(t.Context(), endpoint("other", "v1"), "v1")), read{Value: "other"})
		check(t, "time that took", time.Since(begun), time.Duration(0))
		check(t, "the stalled one", <-waiting, read{Code: "secret_timeout", Kind: fault.Ours})
		check(t, "time that took", time.Since(begun), 300*time.Millisecond)
		check(t, "an immediate repeat", got(c.Secret(t.Context(), endpoint("pay", "v1"), "v1")), read{Code: "secret_timeout", Kind: fault.Ours})
		check(t, "time that took", time.Since(begun), 300*time.Millisecond)
	})
}

// Proves S5: a stalled store does not delay a request past the soft age.
func TestConfirmationIsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		_, _ = c.Secret(t.Context(), e, "v1")
		f.before = stalled
		time.Sleep(10 * time.Minute)
		for range 1000 {
			begun := time.Now()
			check(t, "a use past the soft age", got(c.Secret(t.Context(), e, "v1")), read{Value: "one"})
			check(t, "time that took", time.Since(begun), time.Duration(0))
			time.Sleep(time.Millisecond)
		}
		if calls := f.count("GetSecretValue"); calls > 4 {
			t.Errorf("%d calls in a second of an outage, want at most 4", calls)
		}
		synctest.Wait()
		time.Sleep(time.Second) // the last call ends before the bubble does
	})
}

// A flood of versions that do not exist costs one secret its small allowance,
// and another secret nothing.
func TestUnknownVersionsNeverFloodTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		f.set("stack/endpoint/other", "v1", "other")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		e := endpoint("pay", "v1")
		for i := range 10_000 {
			v, err := c.Secret(t.Context(), e, webhook.KeyVersion(fmt.Sprint("no-", i)))
			if !errors.Is(err, secret.ErrNoVersion) && !errors.Is(err, secret.ErrThrottled) || !v.Empty() {
				t.Fatalf("Secret = %v", got(v, err))
			}
		}
		check(t, "calls", f.count("GetSecretValue"), 8)
		check(t, "another endpoint", got(c.Secret(t.Context(), endpoint("other"), "v1")), read{Value: "other"})
		time.Sleep(time.Second)
		check(t, "a real version a second later", got(c.Secret(t.Context(), e, "v1")), read{Value: "one"})
	})
}

// The allowance is for misses: any number of versions that exist can be read at once.
func TestVersionsThatExistCostNoAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		for i := range 100 {
			v := fmt.Sprint("v", i)
			f.set(name, v, "value of "+v)
			check(t, v, got(c.Secret(t.Context(), endpoint("pay"), webhook.KeyVersion(v))), read{Value: "value of " + v})
		}
	})
}

// Proves M2: the age that is measured is of values in use.
func TestOldestIsTheAgeAtWhichAValueWasServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(name, "v1", "one")
		f.set("stack/endpoint/idle", "v1", "idle")
		c := secret.New(secret.Config{Now: time.Now, Client: f})
		use := func(endpointName string) { _, _ = c.Secret(t.Context(), endpoint(endpointName), "v1"); synctest.Wait() }
		check(t, "of nothing", c.Oldest(), time.Duration(0))
		use("pay")
		use("idle")
		time.Sleep(4 * time.Minute)
		use("pay")
		check(t, "one used at four minutes, one idle since", c.Oldest(), 4*time.Minute)
		time.Sleep(20 * time.Minute)
		use("pay")
		check(t, "both young or idle", c.Oldest(), time.Duration(0))
	})
}

func TestTheCacheIsBoundedAndForgetsTheLeastUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := secret.New(secret.Config{Now: time.Now, Client: f, EntriesMax: 10})
		ask := func(i int) {
			n := fmt.Sprint("e", i)
			if v, err := c.Secret(t.Context(), endpoint(n), "v1"); err != nil || string(v.Bytes()) != n {
				t.Fatalf("Secret(%s) = %v", n, got(v, err))
			}
			time.Sleep(time.Millisecond)
		}
		for i := range 100 {
			f.set(fmt.Sprint("stack/endpoint/e", i), "v1", fmt.Sprint("e", i))
		}
		for i := range 100 {
			ask(i)
			ask(0) // always in use
		}
		check(t, "calls: the one in use was never forgotten", f.count("GetSecretValue"), 100)
		ask(50)
		check(t, "calls: a forgotten one is read again", f.count("GetSecretValue"), 101)
	})
}

// Proves V11: what cannot be a key is refused at use.
func TestWhatTheStoreMayAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		out  *secretsmanager.GetSecretValueOutput
		want read
	}{
		{name: "an empty text", out: &secretsmanager.GetSecretValueOutput{VersionId: new("v1"), SecretString: new("")}, want: read{Code: "secret_empty", Kind: fault.Ours}},
		{name: "no value at all", out: &secretsmanager.GetSecretValueOutput{VersionId: new("v1")}, want: read{Code: "secret_empty", Kind: fault.Ours}},
		{name: "bytes in place of text", out: &secretsmanager.GetSecretValueOutput{VersionId: new("v1"), SecretBinary: []byte{0, 255}}, want: read{Value: "\x00\xff"}},
		{name: "another version", out: &secretsmanager.GetSecretValueOutput{VersionId: new("v2"), SecretString: new("two")}, want: read{Code: "secret_other_version", Kind: fault.Ours}},
		{name: "no such version", err: &types.ResourceNotFoundException{}, want: read{Code: "secret_no_version", Kind: fault.Ours}},
		{name: "marked for deletion", err: &types.InvalidRequestException{}, want: read{Code: "secret_no_version", Kind: fault.Ours}},
		{name: "its KMS key is disabled", err: &types.DecryptionFailure{}, want: read{Code: "secret_refused", Kind: fault.Ours}},
		{name: "throttled", err: &smithy.GenericAPIError{Code: "ThrottlingException"}, want: read{Code: "secret_throttled", Kind: fault.Ours}},
		{name: "denied", err: &smithy.GenericAPIError{Code: "AccessDeniedException"}, want: read{Code: "secret_denied", Kind: fault.Ours}},
		{name: "broken", err: &types.InternalServiceError{}, want: read{Code: "secret_unavailable", Kind: fault.Ours}},
		{name: "no answer", err: errors.New("dial tcp: refused"), want: read{Code: "secret_unreachable", Kind: fault.Ours}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := secret.New(secret.Config{Now: time.Now, Client: getter(func() (*secretsmanager.GetSecretValueOutput, error) { return tt.out, tt.err })})
			check(t, "Secret", got(c.Secret(t.Context(), endpoint("pay"), "v1")), tt.want)
		})
	}
}

// getter answers every call alike.
type getter func() (*secretsmanager.GetSecretValueOutput, error)

func (g getter) GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	return g()
}
