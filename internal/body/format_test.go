package body_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"dakghar/internal/webhook"
)

// The sealed format once more, from its description alone: whoever has the
// wrapped key and KMS can open a body without this package.

// dataKey unwraps the key that sealed a stored body.
func dataKey(t *testing.T, w *world, p webhook.Body) (cipher.AEAD, string) {
	t.Helper()
	id := w.items[string(p.ID)]["k"].(*types.AttributeValueMemberS).Value
	wrapped := binaryOf(w.items["key#"+id]["w"])
	plain, err := w.master.Open(nil, wrapped[:12], wrapped[12:], contextOf(map[string]string{"tenant": string(p.Tenant), "purpose": "body"}))
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(plain)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return aead, id
}

func binaryOf(v types.AttributeValue) []byte { return v.(*types.AttributeValueMemberB).Value }

func additional(p webhook.Body, keyID string) []byte {
	data := []byte{1}
	for _, part := range []string{string(p.ID), keyID} {
		data = append(binary.BigEndian.AppendUint64(data, uint64(len(part))), part...)
	}
	return data
}

// reseal seals packed bytes as the row's own, as only a holder of the data key can.
func reseal(t *testing.T, w *world, p webhook.Body, packed []byte) []byte {
	t.Helper()
	aead, id := dataKey(t, w, p)
	nonce := make([]byte, 12)
	return append([]byte{1}, aead.Seal(nonce, nonce, packed, additional(p, id))...)
}

func TestTheFormatIsAsDescribed(t *testing.T) {
	w := newWorld()
	p := request("1", "put1", sample(10<<10))
	put(t, w.store(), p)
	sealed := binaryOf(w.items[string(p.ID)]["z"])
	aead, id := dataKey(t, w, p)
	packed, err := aead.Open(nil, sealed[1:13], sealed[13:], additional(p, id))
	if err != nil || sealed[0] != 1 {
		t.Fatalf("version %d: %v", sealed[0], err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := decoder.DecodeAll(packed, nil)
	if err != nil || !bytes.Equal(raw, p.Raw) {
		t.Errorf("unpacks to %d bytes, %v", len(raw), err)
	}
}

// No two bodies are sealed under one nonce, and the same body never twice alike.
func TestNoncesAreFresh(t *testing.T) {
	w := newWorld()
	s, p := w.store(), request("1", "put1", []byte("a body"))
	put(t, s, p)
	seen := map[string]bool{}
	for range 1000 {
		if _, ok, err := s.Renew(ctx, p); !ok || err != nil {
			t.Fatal(ok, err)
		}
		seen[string(binaryOf(w.items[string(p.ID)]["z"])[1:13])] = true
	}
	check(t, "different nonces", len(seen), 1000)
}

// bomb is n zero bytes in one frame that does not tell its size.
func bomb(t *testing.T, n int) []byte {
	t.Helper()
	var packed bytes.Buffer
	e, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for zeros := make([]byte, 1<<20); n > 0; n -= len(zeros) {
		if _, err := e.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
