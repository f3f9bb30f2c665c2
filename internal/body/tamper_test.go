package body_test

import (
	"bytes"
	"errors"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"dakghar/internal/body"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

func setBinary(name string, b []byte) func(item) {
	return func(it item) { it[name] = &types.AttributeValueMemberB{Value: b} }
}

func setText(name, s string) func(item) {
	return func(it item) { it[name] = &types.AttributeValueMemberS{Value: s} }
}

func drop(name string) func(item) { return func(it item) { delete(it, name) } }

// keyRow returns the id of the row of the key that sealed a body.
func keyRow(w *world, p webhook.Body) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return "key#" + w.items[string(p.ID)]["k"].(*types.AttributeValueMemberS).Value
}

// scene is two bodies of one tenant, inline and object, and one of another tenant.
type scene struct {
	*world
	small, twin, large, largeTwin, foreign webhook.Body
}

func newScene(t *testing.T) scene {
	t.Helper()
	s := scene{world: newWorld()}
	s.small, s.twin = request("1", "put1", []byte("the small body")), request("2", "put2", []byte("its twin"))
	s.large, s.largeTwin = request("3", "put3", random(64<<10)), request("4", "put4", random(65<<10))
	s.foreign = request("5", "put5", []byte("another tenant's"))
	s.foreign.Tenant = "globex"
	store := s.store()
	for _, p := range []webhook.Body{s.small, s.twin, s.large, s.largeTwin, s.foreign} {
		put(t, store, p)
	}
	return s
}

func (s scene) ref(p webhook.Body) string {
	return s.items[string(p.ID)]["r"].(*types.AttributeValueMemberS).Value
}

// Proves D6: whatever was changed, swapped or lost is refused for good, and by its own name.
func TestWhatDoesNotOpen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, s *scene)
		open  func(s scene) webhook.Body // the small body unless set
		want  error
		// keyAtHand is set where a process opens the body that has its key in memory still.
		keyAtHand bool
	}{
		{name: "a row without bytes", want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) { s.edit(t, string(s.small.ID), drop("z")) }},
		{name: "a row with text for bytes", want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) { s.edit(t, string(s.small.ID), setText("z", strings.Repeat("z", 100))) }},
		{name: "a row without a key id", want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) { s.edit(t, string(s.small.ID), drop("k")) }},
		{name: "a row without anything", want: body.ErrCorrupt, spoil: func(_ *testing.T, s *scene) {
			s.items[string(s.small.ID)] = item{"id": &types.AttributeValueMemberS{Value: string(s.small.ID)}}
		}},
		{name: "a key id that has no row", want: body.ErrKeyMissing, spoil: func(t *testing.T, s *scene) { s.edit(t, string(s.small.ID), setText("k", "nothing")) }},
		{name: "a key id of another tenant's key", want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) {
			s.edit(t, string(s.small.ID), setText("k", keyRow(s.world, s.foreign)[4:]))
		}},
		{name: "the bytes of another row", want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) {
			s.edit(t, string(s.small.ID), setBinary("z", binaryOf(s.items[string(s.twin.ID)]["z"])))
		}},
		{name: "another whole row under this id", want: body.ErrCorrupt, spoil: func(_ *testing.T, s *scene) {
			swapped := maps.Clone(s.items[string(s.twin.ID)])
			swapped["id"] = &types.AttributeValueMemberS{Value: string(s.small.ID)}
			s.items[string(s.small.ID)] = swapped
		}},
		{name: "a changed wrapped key", keyAtHand: true, want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) {
			s.edit(t, keyRow(s.world, s.small), setBinary("w", bytes.Repeat([]byte{1}, 60)))
		}},
		{name: "another tenant's wrapped key", keyAtHand: true, want: body.ErrCorrupt, spoil: func(t *testing.T, s *scene) {
			s.edit(t, keyRow(s.world, s.small), setBinary("w", binaryOf(s.items[keyRow(s.world, s.foreign)]["w"])))
		}},
		{name: "an empty wrapped key", keyAtHand: true, want: body.ErrKeyMissing, spoil: func(t *testing.T, s *scene) { s.edit(t, keyRow(s.world, s.small), setBinary("w", nil)) }},
		{name: "no row of the key", keyAtHand: true, want: body.ErrKeyMissing, spoil: func(_ *testing.T, s *scene) { delete(s.items, keyRow(s.world, s.small)) }},
		{name: "no row", want: body.ErrMissing, spoil: func(_ *testing.T, s *scene) { delete(s.items, string(s.small.ID)) }},
		{name: "the wrong tenant", want: body.ErrCorrupt, open: func(s scene) webhook.Body { p := s.small; p.Tenant = "globex"; return p }},
		{name: "the wrong digest", want: body.ErrCorrupt, open: func(s scene) webhook.Body { p := s.small; p.Raw = []byte("other"); return p }},

		{name: "no object", want: body.ErrMissing, open: func(s scene) webhook.Body { return s.large }, spoil: func(_ *testing.T, s *scene) { clear(s.objects) }},
		{name: "a changed object", want: body.ErrCorrupt, open: func(s scene) webhook.Body { return s.large }, spoil: func(_ *testing.T, s *scene) { s.objects[s.ref(s.large)][40000] ^= 1 }},
		{name: "a cut object", want: body.ErrCorrupt, open: func(s scene) webhook.Body { return s.large }, spoil: func(_ *testing.T, s *scene) {
			s.objects[s.ref(s.large)] = s.objects[s.ref(s.large)][:20]
		}},
		{name: "an endless object", want: body.ErrCorrupt, open: func(s scene) webhook.Body { return s.large }, spoil: func(_ *testing.T, s *scene) { s.objects[s.ref(s.large)] = make([]byte, 3<<20) }},
		{name: "another body's object in its place", want: body.ErrCorrupt, open: func(s scene) webhook.Body { return s.large }, spoil: func(_ *testing.T, s *scene) {
			s.objects[s.ref(s.large)] = s.objects[s.ref(s.largeTwin)]
		}},
		{name: "a reference to another body's object", want: body.ErrCorrupt, open: func(s scene) webhook.Body { return s.large }, spoil: func(t *testing.T, s *scene) {
			s.edit(t, string(s.large.ID), setText("r", s.ref(s.largeTwin)))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			warm := s.store()
			for _, p := range []webhook.Body{s.small, s.foreign} {
				opens(t, warm, p) // its keys of both tenants are in memory
			}
			if tt.spoil != nil {
				tt.spoil(t, &s)
			}
			p := s.small
			if tt.open != nil {
				p = tt.open(s)
			}
			raw, err := open(s.store(), p)
			if !errors.Is(err, tt.want) || fault.KindOf(err) != fault.Permanent || raw != nil {
				t.Errorf("Open gives %d bytes and %v, want %v", len(raw), err, tt.want)
			}
			raw, err = open(warm, p)
			if tt.keyAtHand && (err != nil || !bytes.Equal(raw, p.Raw)) || !tt.keyAtHand && (!errors.Is(err, tt.want) || raw != nil) {
				t.Errorf("with the keys in memory, Open gives %d bytes and %v", len(raw), err)
			}
		})
	}
}

func TestNoChangedByteOpens(t *testing.T) {
	w := newWorld()
	s, p := w.store(), request("1", "put1", []byte("a body"))
	put(t, s, p)
	sealed := bytes.Clone(binaryOf(w.items[string(p.ID)]["z"]))
	refused := func(what string, at int, b []byte) {
		t.Helper()
		w.edit(t, string(p.ID), setBinary("z", b))
		if raw, err := open(s, p); !errors.Is(err, body.ErrCorrupt) || raw != nil {
			t.Errorf("%s at %d: %d bytes, %v", what, at, len(raw), err)
		}
	}
	for at := range sealed {
		changed := bytes.Clone(sealed)
		changed[at] ^= 0x40
		refused("a changed byte", at, changed)
		refused("cut", at, sealed[:at])
	}
	refused("one byte more", len(sealed), append(bytes.Clone(sealed), 0))
	w.edit(t, string(p.ID), setBinary("z", sealed))
	opens(t, s, p)
}

// Proves D6, V3: bytes that were sealed properly and unpack to more than a body
// may have are refused, without unpacking them.
func TestABombDoesNotUnpack(t *testing.T) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	largest := make([]byte, 1<<20)
	two := append(encoder.EncodeAll(largest, nil), encoder.EncodeAll([]byte{0}, nil)...)
	for what, packed := range map[string][]byte{
		"one byte too many":     encoder.EncodeAll(make([]byte, 1<<20+1), nil),
		"64 MiB":                bomb(t, 64<<20),
		"two frames":            two,
		"not compressed at all": []byte("plain"),
	} {
		w := newWorld()
		p := request("1", "put1", largest)
		s := w.store()
		put(t, s, p)
		w.edit(t, string(p.ID), setBinary("z", reseal(t, w, p, packed)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		raw, err := s.Open(ctx, p.ID, p.Tenant, webhook.DigestOf(p.Raw))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, body.ErrCorrupt) || raw != nil {
			t.Errorf("%s: %d bytes, %v", what, len(raw), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 6<<20 {
			t.Errorf("%s: %d bytes of memory", what, took)
		}
	}
}
