package body_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/body"
	"dakghar/internal/webhook"
)

var (
	start = time.Date(2026, time.March, 1, 12, 0, 0, 123, time.UTC)
	month = 30 * 24 * time.Hour
	told  = time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC) // a month on, in whole seconds
)

const canary = "canary-4242-4242"

// request is a request of an event with these raw bytes.
func request(event, putID string, raw []byte) webhook.Body {
	return webhook.Body{
		ID: webhook.DeriveBodyID("pay", webhook.DigestOf(raw)), Tenant: "acme", Raw: raw,
		InboxID: webhook.InboxID("in_" + event), PutID: putID, At: start,
	}
}

func open(s *body.Store, p webhook.Body) ([]byte, error) {
	return s.Open(ctx, p.ID, p.Tenant, webhook.DigestOf(p.Raw))
}

// opens fails unless the store gives back exactly what was put.
func opens(t *testing.T, s *body.Store, p webhook.Body) {
	t.Helper()
	raw, err := open(s, p)
	if err != nil || !bytes.Equal(raw, p.Raw) {
		t.Errorf("Open(%s) gives %d bytes, %v", p.ID, len(raw), err)
	}
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func put(t *testing.T, s *body.Store, p webhook.Body) webhook.Placed {
	t.Helper()
	placed, err := s.Put(ctx, p)
	if err != nil {
		t.Fatalf("Put(%s): %v", p.ID, err)
	}
	return placed
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

// sample is a JSON event of about n bytes, as compressible as real ones.
func sample(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"id":"evt_1","note":"` + canary + `","lines":[`)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; b.Len() < n-160; i++ {
		fmt.Fprintf(&b, `{"id":"li_%08x","amount":%d,"currency":"eur","description":"item %d","metadata":{"ref":"%016x"}},`, r.Uint32(), r.IntN(99999), i, r.Uint64())
	}
	b.WriteString(`{}]}`)
	return b.Bytes()
}

// bodies are the raw bytes that every suite stores, with where they should rest.
var bodies = []struct {
	name  string
	raw   []byte
	large bool
}{
	{"an empty body", []byte{}, false},
	{"one byte", []byte{0}, false},
	{"a JSON event of 10 KiB", sample(10 << 10), false},
	{"32 KiB of chance", random(32 << 10), true},
	{"1 MiB of one letter", bytes.Repeat([]byte("a"), 1<<20), false},
	{"1 MiB of JSON", sample(1 << 20)[:1<<20-200], true},
	{"1 MiB of chance", random(1 << 20), true},
}

// Proves D6: every body up to 1 MiB comes back byte for byte, in this process and in the next.
func TestRoundTrip(t *testing.T) {
	forEachWorld(t, func(t *testing.T, w services) {
		for _, b := range bodies {
			t.Run(b.name, func(t *testing.T) {
				s, p := w.store(), request("1", "put1", b.raw)
				before := w.objectCount(t)
				check(t, "placed", put(t, s, p), webhook.Placed{ExpiresAt: told, FirstInbox: "in_1"})
				check(t, "in the bucket", w.objectCount(t)-before == 1, b.large)
				opens(t, s, p)
				opens(t, w.store(), p)
			})
		}
	})
}

func TestWhatIsNeverStored(t *testing.T) {
	w := newWorld()
	s := w.store()
	for what, change := range map[string]func(*webhook.Body){
		"a body above 1 MiB": func(p *webhook.Body) { p.Raw = make([]byte, 1<<20+1) },
		"no body id":         func(p *webhook.Body) { p.ID = "" },
		"no inbox id":        func(p *webhook.Body) { p.InboxID = "" },
		"no put_id":          func(p *webhook.Body) { p.PutID = "" },
		"no time of receipt": func(p *webhook.Body) { p.At = time.Time{} },
	} {
		p := request("1", "put1", []byte("raw"))
		change(&p)
		_, putErr := s.Put(ctx, p)
		_, _, renewErr := s.Renew(ctx, p)
		if !errors.Is(putErr, body.ErrInvalid) || !errors.Is(renewErr, body.ErrInvalid) {
			t.Errorf("%s: Put %v, Renew %v", what, putErr, renewErr)
		}
	}
	check(t, "calls", w.calls, []string(nil))
}

// The rows, whole: names, types and the order in which they come to be.
func TestTheRowsAsStored(t *testing.T) {
	w := newWorld()
	cfg := w.config()
	ids := 0
	cfg.NewID = func() string { ids++; return fmt.Sprint("id", ids) }
	cfg.Now = func() time.Time { return start }
	s := body.New(cfg)
	small, large := request("1", "put1", []byte("raw")), request("2", "put2", random(40<<10))
	put(t, s, small)
	put(t, s, large)

	shape := func(it item) map[string]string {
		m := map[string]string{}
		for name, v := range it {
			switch v := v.(type) {
			case *types.AttributeValueMemberB:
				m[name] = fmt.Sprint("B ", len(v.Value))
			case *types.AttributeValueMemberS:
				m[name] = "S " + v.Value
			case *types.AttributeValueMemberN:
				m[name] = "N " + v.Value
			}
		}
		return m
	}
	got := map[string]map[string]string{}
	for id, it := range w.items {
		got[id] = shape(it)
	}
	x := fmt.Sprint("N ", start.Add(month+time.Hour).Unix())
	check(t, "items", got, map[string]map[string]string{
		"key#id1":        {"id": "S key#id1", "w": "B 60", "x": fmt.Sprint("N ", start.Add(month+time.Hour+7*24*time.Hour).Unix())},
		string(small.ID): {"id": "S " + string(small.ID), "z": "B 41", "k": "S id1", "p": "S put1", "i": "S in_1", "x": x},
		string(large.ID): {"id": "S " + string(large.ID), "r": "S bodies/" + string(large.ID) + "/put2.id2", "k": "S id1", "p": "S put2", "i": "S in_2", "x": x},
	})
	check(t, "calls: the key is confirmed first, an object comes before its row", w.calls, []string{
		"GenerateDataKey", "PutItem key#id1", "PutItem " + string(small.ID),
		"GetItem " + string(large.ID), "PutObject bodies/" + string(large.ID) + "/put2.id2", "PutItem " + string(large.ID),
	})
}

// A JSON event of 10 KiB rests in three write units: DynamoDB counts names and
// values, a number as half its digits and one, in steps of 1,024 bytes.
func TestATypicalBodyCostsThreeWriteUnits(t *testing.T) {
	w := newWorld()
	p := request("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaa", sample(10<<10))
	put(t, w.store(), p)
	size := 0
	for name, v := range w.items[string(p.ID)] {
		size += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += len(v.Value)/2 + 1
		}
	}
	if units := (size + 1023) / 1024; units > 3 {
		t.Errorf("%d bytes are %d write units", size, units)
	}
}

// Proves A3: the same bytes again write nothing, and say who came first.
func TestTheSameBytesAgain(t *testing.T) {
	forEachWorld(t, func(t *testing.T, w services) {
		for _, raw := range [][]byte{[]byte("small"), random(64 << 10)} {
			first, again := request("1", "put1", raw), request("2", "put2", raw)
			again.At = start.Add(time.Hour)
			put(t, w.store(), first)
			objects := w.objectCount(t)
			want := webhook.Placed{ExpiresAt: told, Existed: true, FirstInbox: "in_1"}
			check(t, "again", put(t, w.store(), again), want)
			want.Existed = false
			check(t, "the first one's own repeat", put(t, w.store(), first), want)
			check(t, "objects", w.objectCount(t), objects)
		}
	})
}

// Proves X1: what nobody renews is put anew where too little of its life is left,
// by one of those who put it, and opens as ever.
func TestALastingBodyReplacesWhatEndsTooSoon(t *testing.T) {
	forEachWorld(t, func(t *testing.T, w services) {
		for _, raw := range [][]byte{[]byte("to last"), random(66 << 10)} {
			lasting := func(putID string, after time.Duration) webhook.Body {
				p := request("1", putID, raw)
				p.At, p.Lasting = start.Add(after), true
				return p
			}
			day := 24 * time.Hour
			check(t, "the first", put(t, w.store(), lasting("put1", 0)), webhook.Placed{ExpiresAt: told, FirstInbox: "in_1"})
			check(t, "within a day", put(t, w.store(), lasting("put2", day)), webhook.Placed{ExpiresAt: told, Existed: true, FirstInbox: "in_1"})
			later := told.Add(day + time.Second)
			check(t, "after a day", put(t, w.store(), lasting("put3", day+time.Second)), webhook.Placed{ExpiresAt: later, FirstInbox: "in_1"})
			check(t, "beside a rival", put(t, w.store(), lasting("put4", day+time.Second)), webhook.Placed{ExpiresAt: later, Existed: true, FirstInbox: "in_1"})
			check(t, "any other put", put(t, w.store(), request("2", "put5", raw)), webhook.Placed{ExpiresAt: later, Existed: true, FirstInbox: "in_1"})
			opens(t, w.store(), lasting("put1", 0))
		}
	})
}

// A row that lost its first inbox id names the asker, whose row the caller then reads.
func TestARowWithoutAFirstEventNamesTheAsker(t *testing.T) {
	w := newWorld()
	p := request("1", "put1", []byte("raw"))
	put(t, w.store(), p)
	w.edit(t, string(p.ID), drop("i"))
	check(t, "again", put(t, w.store(), request("2", "put2", p.Raw)), webhook.Placed{ExpiresAt: told, Existed: true, FirstInbox: "in_2"})
}

// What one call stored is not touched by the buffers of the next.
func TestStoredBytesAreTheirOwn(t *testing.T) {
	w := newWorld()
	s := w.store()
	var all []webhook.Body
	for size := 20_000; size > 0; size -= 997 {
		for _, n := range []int{size, 20_000 - size} {
			p := request("1", fmt.Sprint("put", n), sample(n + 200)[:n])
			put(t, s, p)
			all = append(all, p)
		}
	}
	for _, p := range all {
		opens(t, s, p)
	}
}

func TestRenew(t *testing.T) {
	forEachWorld(t, func(t *testing.T, w services) {
		for _, raw := range [][]byte{[]byte("to renew"), random(65 << 10)} {
			first, later := request("1", "put1", raw), request("2", "put2", raw)
			later.At = start.Add(29 * 24 * time.Hour)

			renewed, ok, err := w.store().Renew(ctx, later)
			check(t, "of nothing", [3]any{renewed, ok, err}, [3]any{webhook.Placed{}, false, nil})
			_, err = open(w.store(), first)
			check(t, "raises no row", errors.Is(err, body.ErrMissing), true)

			put(t, w.store(), first)
			renewed, ok, err = w.store().Renew(ctx, later)
			longer := told.Add(29 * 24 * time.Hour)
			check(t, "of a body", [3]any{renewed, ok, err}, [3]any{webhook.Placed{ExpiresAt: longer, Existed: true}, true, nil})
			check(t, "then", put(t, w.store(), request("3", "put3", raw)), webhook.Placed{ExpiresAt: longer, Existed: true, FirstInbox: "in_1"})
			opens(t, w.store(), first)
		}
	})
}

func TestRemove(t *testing.T) {
	forEachWorld(t, func(t *testing.T, w services) {
		for _, raw := range [][]byte{[]byte("to remove"), random(66 << 10)} {
			p := request("1", "put1", raw)
			objects := w.objectCount(t)
			check(t, "nothing", w.store().Remove(ctx, p.ID, "put1"), nil)
			put(t, w.store(), p)
			check(t, "another's", w.store().Remove(ctx, p.ID, "put2"), nil)
			opens(t, w.store(), p)

			rival := request("2", "put2", raw)
			if _, ok, err := w.store().Renew(ctx, rival); !ok || err != nil {
				t.Fatal(ok, err)
			}
			check(t, "renewed by a rival", w.store().Remove(ctx, p.ID, "put1"), nil)
			opens(t, w.store(), p)

			check(t, "its own", w.store().Remove(ctx, p.ID, "put2"), nil)
			_, err := open(w.store(), p)
			check(t, "then", errors.Is(err, body.ErrMissing), true)
			// The superseded object of a large body is the lifecycle's to take.
			check(t, "objects left", w.objectCount(t)-objects, len(raw)/(66<<10))
		}
	})
}

// Proves D6, A3: a body that is over but not swept opens, exists, and can be
// renewed; and a renewal outlives the key that first sealed the body.
func TestLife(t *testing.T) {
	for _, raw := range [][]byte{[]byte("small"), random(64 << 10)} {
		w := newWorld()
		at := start
		process := func() *body.Store {
			cfg := w.config()
			cfg.Now = func() time.Time { return at }
			return body.New(cfg)
		}
		pass := func(days int) { at = at.Add(time.Duration(days) * 24 * time.Hour) }
		p := request("1", "put1", raw)
		put(t, process(), p)

		pass(31)
		opens(t, process(), p) // not swept yet
		again := request("2", "put2", raw)
		again.At = at
		placed := put(t, process(), again)
		check(t, "over, and exists", [2]bool{placed.Existed, placed.ExpiresAt.Before(at)}, [2]bool{true, true})
		if _, ok, err := process().Renew(ctx, again); !ok || err != nil {
			t.Fatal(ok, err)
		}
		for range 29 {
			pass(1)
			w.sweep(at)
			opens(t, process(), p)
		}
		pass(2)
		w.sweep(at)
		_, err := open(process(), p)
		check(t, "swept", errors.Is(err, body.ErrMissing), true)
		_, ok, err := process().Renew(ctx, again)
		check(t, "renewing what was swept", [2]any{ok, err}, [2]any{false, nil})
		check(t, "rows of bodies", w.items[string(p.ID)], item(nil))
	}
}

// Proves D6, V9: no byte string in any store, and no name, shows what was in a body.
func TestNothingStoredShowsTheBody(t *testing.T) {
	w := newWorld()
	s := w.store()
	raws := [][]byte{[]byte(canary), []byte(strings.Repeat(canary+"\n", 1000)), sample(10 << 10), append(random(64<<10), canary...)}
	for i, raw := range raws {
		p := request("1", fmt.Sprint("put", i), raw)
		put(t, s, p)
		if _, ok, err := s.Renew(ctx, p); !ok || err != nil {
			t.Fatal(ok, err)
		}
		opens(t, s, p)
	}
	stored := w.storedBytes()
	if len(stored) < 20 {
		t.Fatalf("only %d byte strings were looked at", len(stored))
	}
	for _, b := range stored {
		for at := range len(canary) - 7 {
			if bytes.Contains(b, []byte(canary[at:at+8])) {
				t.Fatal("a stored byte string shows a part of a body")
			}
		}
	}
}
