package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"io"
)

// vault seals values for their rest in memory, under a key that exists nowhere else.
type vault struct {
	aead cipher.AEAD
	rand io.Reader
}

func newVault(random io.Reader) *vault {
	var key [32]byte
	mustRead(random, key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(fmt.Sprintf("secret: AES refuses a 32 byte key: %v", err))
	}
	clear(key[:])
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(fmt.Sprintf("secret: GCM refuses AES: %v", err))
	}
	return &vault{aead: aead, rand: random}
}

// seal binds the value to its place: the sealed bytes open nowhere else.
func (v *vault) seal(k key, plain []byte) []byte {
	nonce := make([]byte, v.aead.NonceSize(), v.aead.NonceSize()+len(plain)+v.aead.Overhead())
	mustRead(v.rand, nonce)
	return v.aead.Seal(nonce, nonce, plain, []byte(k.String()))
}

// open returns what was sealed. Memory that changed under us is a broken
// invariant, not an event of the world.
func (v *vault) open(k key, sealed []byte) []byte {
	n := v.aead.NonceSize()
	plain, err := v.aead.Open(nil, sealed[:n], sealed[n:], []byte(k.String()))
	if err != nil {
		panic("secret: a sealed value in memory does not open")
	}
	return plain
}

// mustRead panics when there is no randomness: nothing may be sealed without it.
func mustRead(random io.Reader, b []byte) {
	if _, err := io.ReadFull(random, b); err != nil {
		panic(fmt.Sprintf("secret: no randomness: %v", err))
	}
}
