package kms

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
)

func newAEAD(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func invalidCiphertext() error {
	return refuse("InvalidCiphertextException", "the ciphertext is not one of this service's, or the encryption context is not the one it was made with")
}

// A blob is a version, the key's id after its length, a nonce, and the sealed data key.
const blobVersion = 1

func (k *key) wrap(plain []byte, context map[string]string, random io.Reader) ([]byte, error) {
	nonce := make([]byte, k.aead.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	blob := append([]byte{blobVersion, byte(len(k.id))}, k.id...)
	blob = append(blob, nonce...)
	return k.aead.Seal(blob, nonce, plain, additional(context)), nil
}

func (k *key) unwrap(sealed []byte, context map[string]string) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return nil, invalidCiphertext()
	}
	plain, err := k.aead.Open(nil, sealed[:n], sealed[n:], additional(context))
	if err != nil {
		return nil, invalidCiphertext()
	}
	return plain, nil
}

// split returns the key id in a blob and what follows it.
func split(blob []byte) (id string, sealed []byte, ok bool) {
	if len(blob) < 2 || blob[0] != blobVersion || len(blob) < 2+int(blob[1]) {
		return "", nil, false
	}
	end := 2 + int(blob[1])
	return string(blob[2:end]), blob[end:], true
}

// additional is what is authenticated beside a data key: the context in the
// order of its names, each part after its length so that no two contexts read
// the same. The key needs no mention: another key opens nothing.
func additional(context map[string]string) []byte {
	var b []byte
	add := func(part string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	for _, name := range slices.Sorted(maps.Keys(context)) {
		add(name)
		add(context[name])
	}
	return b
}
