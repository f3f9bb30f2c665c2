package body_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"dakghar/internal/body"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

func kmsDown(_ context.Context, _ int, op string) error {
	if op == "GenerateDataKey" || op == "Decrypt" {
		return &kmstypes.KMSInternalException{}
	}
	return nil
}

func putCode(s *body.Store, p webhook.Body) string {
	if _, err := s.Put(ctx, p); err != nil {
		return string(fault.KindOf(err)) + " " + fault.CodeOf(err)
	}
	return ""
}

func openCode(s *body.Store, p webhook.Body) string {
	if _, err := open(s, p); err != nil {
		return string(fault.KindOf(err)) + " " + fault.CodeOf(err)
	}
	return ""
}

func numbered(i int) webhook.Body {
	return request(fmt.Sprint(i), "put1", fmt.Appendf(nil, "body %d", i))
}

// Many first bodies at once make one key per tenant.
func TestOneKeyPerTenant(t *testing.T) {
	w := newWorld()
	s := w.store()
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			p := numbered(i)
			p.Tenant = webhook.Tenant(fmt.Sprint("tenant", i%3))
			if _, err := s.Put(ctx, p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check(t, "data keys", w.count("GenerateDataKey"), 3)
	check(t, "key rows", w.count("PutItem key#"), 3)
	for i := range 300 {
		p := numbered(i)
		p.Tenant = webhook.Tenant(fmt.Sprint("tenant", i%3))
		opens(t, s, p)
	}
	check(t, "unwrapped by the process that made them", w.count("Decrypt"), 0)
}

// No body is sealed under a key whose row is not confirmed.
func TestAKeyThatIsNotConfirmedSealsNothing(t *testing.T) {
	for what, fail := range map[string]func(w *world){
		"the key row fails": func(w *world) { w.before = func(_ context.Context, n int, _ string) error { return lostAt(n, 1) } },
		"its reply is lost": func(w *world) { w.after = func(n int, _ string) error { return lostAt(n, 1) } },
		"its id is another's": func(w *world) {
			w.items["key#same"] = item{"w": &types.AttributeValueMemberB{Value: []byte("another's")}}
		},
		"KMS fails before it is": func(w *world) { w.before = func(_ context.Context, n int, _ string) error { return lostAt(n, 0) } },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld()
			cfg := w.config()
			ids := []string{"same", "other"}
			cfg.NewID = func() string { id := ids[0]; ids = ids[1:]; return id }
			s := body.New(cfg)
			fail(w)
			if _, err := s.Put(ctx, numbered(1)); fault.KindOf(err) != fault.Ours {
				t.Errorf("Put: %v", err)
			}
			check(t, "bodies written", w.count("PutItem bd_"), 0)
			w.before, w.after = nil, nil
			put(t, s, numbered(1))
			check(t, "the key of the next try", keyRow(w, numbered(1)), "key#other")
			opens(t, w.store(), numbered(1))
		})
	}
}

// One caller's departure fails nobody who waits for the same key.
func TestAKeyOutlivesTheCallerWhoAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		release := make(chan struct{})
		w.before = func(ctx context.Context, _ int, op string) error {
			if op != "GenerateDataKey" {
				return nil
			}
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s := w.store()
		impatient, leave := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := s.Put(impatient, numbered(1)); first <- err }()
		synctest.Wait()
		go func() { _, err := s.Put(t.Context(), numbered(2)); second <- err }()
		synctest.Wait()
		leave()
		check(t, "the one who left", fault.CodeOf(<-first), "body_key_timeout")
		close(release)
		check(t, "the one who waited", <-second, error(nil))
		check(t, "keys", w.count("GenerateDataKey"), 1)
	})
}

// Proves L2: with KMS down, keys at hand seal until they are an hour old, then it is our fault.
func TestSealingWhileKMSIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.store()
		n := 0
		next := func() string { n++; code := putCode(s, numbered(n)); synctest.Wait(); return code }
		check(t, "the first", next(), "")
		time.Sleep(30*time.Minute - 1)
		check(t, "just under half its time", next(), "")
		check(t, "keys", w.count("GenerateDataKey"), 1)
		time.Sleep(1)
		check(t, "at half its time", next(), "")
		check(t, "keys: a new one, in the background", w.count("GenerateDataKey"), 2)

		w.before = kmsDown
		time.Sleep(time.Hour - time.Second)
		for range 100 {
			check(t, "just under an hour, KMS down", next(), "")
		}
		check(t, "tries in that moment", w.count("GenerateDataKey"), 3)
		time.Sleep(time.Second)
		check(t, "after an hour", next(), "ours body_kms_unavailable")
		w.before = nil
		check(t, "KMS back", next(), "")
	})
}

// Proves L2: replacing a key never makes a request wait.
func TestReplacingAKeyIsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.store()
		put(t, s, numbered(0))
		time.Sleep(40 * time.Minute)
		w.before = func(ctx context.Context, _ int, op string) error {
			if op == "GenerateDataKey" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		begun := time.Now()
		for i := range 100 {
			put(t, s, numbered(i+1))
		}
		check(t, "time for a hundred bodies", time.Since(begun), time.Duration(0))
		time.Sleep(time.Second)
	})
}

func TestAKeySealsABoundedNumberOfBodies(t *testing.T) {
	w := newWorld()
	cfg := w.config()
	cfg.KeySealsMax = 5
	s := body.New(cfg)
	per := map[string]int{}
	for i := range 100 {
		put(t, s, numbered(i))
		per[keyRow(w, numbered(i))]++
	}
	for id, n := range per {
		if n > 5 {
			t.Errorf("%s sealed %d bodies", id, n)
		}
	}
}

// Proves D6: opening needs KMS once an hour per key; without it, it is our fault.
func TestOpeningWhileKMSIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		put(t, w.store(), numbered(1))
		s := w.store()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { opens(t, s, numbered(1)) })
		}
		wg.Wait()
		check(t, "unwrapped", w.count("Decrypt"), 1)
		w.before = kmsDown
		time.Sleep(time.Hour - 1)
		check(t, "just under an hour, KMS down", openCode(s, numbered(1)), "")
		time.Sleep(1)
		check(t, "after an hour", openCode(s, numbered(1)), "ours body_kms_unavailable")
		w.before = nil
		check(t, "KMS back", openCode(s, numbered(1)), "")
	})
}

func TestTheKeysHeldAreBounded(t *testing.T) {
	w := newWorld()
	cfg := w.config()
	cfg.KeysMax = 4
	tenant := func(i int) webhook.Body {
		p := numbered(i)
		p.Tenant = webhook.Tenant(fmt.Sprint("tenant", i))
		return p
	}
	s := body.New(cfg)
	for i := range 20 {
		put(t, s, tenant(i))
	}
	reader := body.New(cfg)
	for i := range 20 {
		opens(t, reader, tenant(i))
		opens(t, reader, tenant(0)) // always in use
	}
	check(t, "unwrapped: the one in use was never forgotten", w.count("Decrypt"), 20)
	opens(t, reader, tenant(5))
	check(t, "unwrapped: a forgotten one again", w.count("Decrypt"), 21)
}

// A key of another KMS key, or a disabled one, is a configuration to be put
// right: our fault, not a lost body.
func TestWhatKMSMaySay(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&kmstypes.InvalidCiphertextException{}, "permanent body_corrupt"},
		{&kmstypes.IncorrectKeyException{}, "ours body_kms_refused"},
		{&kmstypes.DisabledException{}, "ours body_kms_refused"},
		{&kmstypes.KMSInvalidStateException{}, "ours body_kms_refused"},
		{&kmstypes.KeyUnavailableException{}, "ours body_kms_refused"},
		{&kmstypes.NotFoundException{}, "ours body_kms_refused"},
		{&kmstypes.DependencyTimeoutException{}, "ours body_kms_refused"},
		{&kmstypes.KMSInternalException{}, "ours body_kms_unavailable"},
		{errors.New("dial"), "ours body_kms_unreachable"},
	} {
		w := newWorld()
		put(t, w.store(), numbered(1))
		w.before = func(_ context.Context, _ int, op string) error {
			if op == "Decrypt" {
				return tt.err
			}
			return nil
		}
		check(t, fmt.Sprintf("%T", tt.err), openCode(w.store(), numbered(1)), tt.want)
	}
}
