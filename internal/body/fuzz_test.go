package body_test

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/body"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Whatever a row, its key row and its object hold, opening gives the very body
// or an error with a kind and a code, and never panics.
func FuzzOpen(f *testing.F) {
	w := newWorld()
	p := request("1", "put1", []byte("a body"))
	if _, err := w.store().Put(ctx, p); err != nil {
		f.Fatal(err)
	}
	row, id := w.items[string(p.ID)], string(p.ID)
	keyID := row["k"].(*types.AttributeValueMemberS).Value
	sealed, wrapped := binaryOf(row["z"]), binaryOf(w.items["key#"+keyID]["w"])
	f.Add(sealed, keyID, "", wrapped, []byte{}, uint8(0))
	f.Add(sealed[:40], keyID, "", wrapped, []byte{}, uint8(1))
	f.Add([]byte{}, keyID, "bodies/"+id+"/x", wrapped, sealed, uint8(2))
	f.Add([]byte{1}, "", "bodies/", []byte{}, bytes.Repeat([]byte{1}, 30), uint8(3))
	f.Fuzz(func(t *testing.T, z []byte, k, r string, wrapped, object []byte, drop uint8) {
		fuzzed := newWorld()
		it := item{
			"id": &types.AttributeValueMemberS{Value: id}, "z": &types.AttributeValueMemberB{Value: z},
			"k": &types.AttributeValueMemberS{Value: k}, "r": &types.AttributeValueMemberS{Value: r},
		}
		for i, name := range []string{"z", "k", "r"} {
			if drop&(1<<i) != 0 {
				delete(it, name)
			}
		}
		fuzzed.items[id] = it
		fuzzed.items["key#"+k] = item{"id": &types.AttributeValueMemberS{Value: "key#" + k}, "w": &types.AttributeValueMemberB{Value: wrapped}}
		fuzzed.objects[r] = object
		opened(t, fuzzed.store(), p)
	})
}

func opened(t *testing.T, s *body.Store, p webhook.Body) {
	t.Helper()
	raw, err := open(s, p)
	switch {
	case err == nil && !bytes.Equal(raw, p.Raw):
		t.Errorf("opened as %d other bytes", len(raw))
	case err != nil && (fault.CodeOf(err) == "unknown" || fault.KindOf(err) == fault.Theirs || raw != nil):
		t.Errorf("%d bytes and %v", len(raw), err)
	}
}
