package secret_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/secret"
	"dakghar/internal/webhook"
)

const (
	tokenA = "aaaaaaaa-0000-4000-8000-000000000001"
	tokenB = "aaaaaaaa-0000-4000-8000-000000000002" // shares its first letters with tokenA
	tokenC = "aaaaaaaa-0000-4000-8000-000000000003"
)

func value(s string) secret.Value { return secret.NewValue([]byte(s)) }

// wrote is what a caller of Create or Put sees.
type wrote struct {
	Version webhook.KeyVersion
	Code    string
}

func written(v webhook.KeyVersion, err error) wrote {
	if err != nil {
		return wrote{Version: v, Code: fault.CodeOf(err)}
	}
	return wrote{Version: v}
}

func describe(t *testing.T, s *secret.Store, e webhook.Endpoint) []secret.Version {
	t.Helper()
	d, err := s.Describe(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return d.Versions
}

// Proves S2: every key stays readable by its version id over rotations, and ends with its label.
func TestRotationKeepsEveryKey(t *testing.T) {
	for where, client := range clients(t) {
		t.Run(where, func(t *testing.T) {
			s, e := secret.NewStore(client, ""), endpoint("pay")
			_, err := s.Describe(t.Context(), e)
			check(t, "no secret yet", errors.Is(err, secret.ErrNoVersion), true)
			check(t, "put without a secret", written(s.Put(t.Context(), e, value("x"), tokenA)), wrote{Code: "secret_no_version"})

			check(t, "create", written(s.Create(t.Context(), e, value("one"), tokenA)), wrote{Version: tokenA})
			check(t, "rotate", written(s.Put(t.Context(), e, value("two"), tokenB)), wrote{Version: tokenB})
			check(t, "rotate to bytes", written(s.Put(t.Context(), e, value("\xff\x00"), tokenC)), wrote{Version: tokenC})
			check(t, "versions", describe(t, s, e), asTold(where, []secret.Version{
				{ID: tokenA, Kept: true}, {ID: tokenB, Kept: true, Previous: true}, {ID: tokenC, Kept: true, Current: true},
			}))
			c := secret.New(secret.Config{Now: time.Now, Client: client})
			for version, want := range map[webhook.KeyVersion]string{tokenA: "one", tokenB: "two", tokenC: "\xff\x00"} {
				check(t, "value of "+string(version), got(c.Secret(t.Context(), e, version)), read{Value: want})
			}
			check(t, "what the store calls current", current(t, c, endpoint("pay", tokenA)), looked{Version: tokenC, Read: read{Value: "\xff\x00"}})

			for range 2 {
				check(t, "retire", s.Retire(t.Context(), e, tokenA), nil)
			}
			check(t, "retire what never was", s.Retire(t.Context(), e, "nothing"), nil)
			check(t, "versions", describe(t, s, e), asTold(where, []secret.Version{
				{ID: tokenB, Kept: true, Previous: true}, {ID: tokenC, Kept: true, Current: true},
			}))
		})
	}
}

// A repeated command changes nothing more, and takes nothing back.
func TestWritesAreIdempotent(t *testing.T) {
	for where, client := range clients(t) {
		t.Run(where, func(t *testing.T) {
			s, e := secret.NewStore(client, ""), endpoint("pay")
			for range 2 {
				check(t, "create", written(s.Create(t.Context(), e, value("one"), tokenA)), wrote{Version: tokenA})
			}
			for range 2 {
				check(t, "put", written(s.Put(t.Context(), e, value("two"), tokenB)), wrote{Version: tokenB})
			}
			check(t, "a late repeat of the create", written(s.Create(t.Context(), e, value("one"), tokenA)), wrote{Version: tokenA})
			check(t, "a late repeat as a put", written(s.Put(t.Context(), e, value("one"), tokenA)), wrote{Version: tokenA})
			want := []secret.Version{{ID: tokenA, Kept: true, Previous: true}, {ID: tokenB, Kept: true, Current: true}}
			check(t, "versions", describe(t, s, e), want)

			taken := wrote{Code: "secret_token_or_name_taken"}
			check(t, "the name with another token", written(s.Create(t.Context(), e, value("one"), tokenC)), taken)
			check(t, "the token with another value", written(s.Create(t.Context(), e, value("other"), tokenA)), taken)
			check(t, "the token with another value", written(s.Put(t.Context(), e, value("other"), tokenA)), taken)
			check(t, "versions", describe(t, s, e), want)
		})
	}
}

// A command that dies, or loses a reply, at any of its calls is finished by running it again.
func TestARepeatFinishesWhatDiedHalfWay(t *testing.T) {
	lost := errors.New("connection reset")
	run := func(s *secret.Store, ctx context.Context) error {
		e := endpoint("pay")
		_, err := s.Create(ctx, e, value("one"), tokenA)
		if err == nil {
			_, err = s.Put(ctx, e, value("two"), tokenB)
		}
		if err == nil {
			err = s.Retire(ctx, e, tokenA)
		}
		return err
	}
	counting := newFake()
	if err := run(secret.NewStore(counting, ""), t.Context()); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range counting.calls {
		total += n
	}
	for when := range 2 {
		for at := range total {
			t.Run(fmt.Sprintf("fault %d of call %d", when, at), func(t *testing.T) {
				f, n := newFake(), 0
				once := func() error {
					n++
					if n-1 == at {
						return lost
					}
					return nil
				}
				if when == 0 {
					f.before = func(context.Context, string, string) error { return once() }
				} else {
					f.after = func(string) error { return once() }
				}
				s := secret.NewStore(f, "")
				if err := run(s, t.Context()); fault.KindOf(err) != fault.Ours {
					t.Fatalf("the fault came out as %v", err)
				}
				check(t, "the repeat", run(s, t.Context()), nil)
				check(t, "versions", describe(t, s, endpoint("pay")), []secret.Version{
					{ID: tokenA, Previous: true}, {ID: tokenB, Kept: true, Current: true},
				})
			})
		}
	}
}

func TestWhatIsNotWritten(t *testing.T) {
	f := newFake()
	s, e := secret.NewStore(f, ""), endpoint("pay")
	for _, put := range []func(context.Context, webhook.Endpoint, secret.Value, string) (webhook.KeyVersion, error){s.Create, s.Put} {
		check(t, "an empty secret", written(put(t.Context(), e, value(""), tokenA)), wrote{Code: "secret_empty"})
		check(t, "the zero secret", written(put(t.Context(), e, secret.Value{}, tokenA)), wrote{Code: "secret_empty"})
		check(t, "a short token", written(put(t.Context(), e, value("x"), tokenA[:31])), wrote{Code: "secret_token_length"})
		check(t, "a long token", written(put(t.Context(), e, value("x"), strings.Repeat("a", 65))), wrote{Code: "secret_token_length"})
	}
	check(t, "calls", len(f.calls), 0)
}

// Proves M4: not even a store that repeats the secret in its answer gets it into our errors.
func TestErrorsCarryNoSecret(t *testing.T) {
	const canary = "whsec_canary"
	f := newFake()
	f.before = func(context.Context, string, string) error { return fmt.Errorf("refused %s", canary) }
	s := secret.NewStore(f, "")
	_, created := s.Create(t.Context(), endpoint("pay"), value(canary), tokenA)
	_, put := s.Put(t.Context(), endpoint("pay"), value(canary), tokenA)
	_, read := secret.New(secret.Config{Now: time.Now, Client: f}).Secret(t.Context(), endpoint("pay"), tokenA)
	for _, err := range []error{created, put, read} {
		if err == nil || strings.Contains(fmt.Sprintf("%+v %#v %v", err, err, errors.Unwrap(err)), canary) {
			t.Errorf("the error is %v", err)
		}
	}
}
