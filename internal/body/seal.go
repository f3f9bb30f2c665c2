package body

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"dakghar/internal/webhook"
)

// RawBytesMax bounds a raw body, before compression.
const RawBytesMax = 1 << 20

// sealVersion is the first byte of sealed bytes, and part of what is authenticated.
const sealVersion = 1

// nonceSize and the tag are AES-GCM's; compression adds a few bytes at most.
const (
	nonceSize      = 12
	sealedBytesMin = 1 + nonceSize + 16
	sealedBytesMax = RawBytesMax + 4096
)

// codec compresses and seals. Its encoders and buffers are pooled: they never
// leave a call, and what a call returns is its own.
type codec struct {
	rand     io.Reader
	packers  sync.Pool
	decoders sync.Pool
}

// packer is an encoder with the buffer that it packs into.
type packer struct {
	encoder *zstd.Encoder
	buffer  []byte
}

// packedBytesKept bounds the buffers that stay pooled; a rare large body's goes.
const packedBytesKept = 128 << 10

// newEncoder has no checksum: the seal and the digest are stronger.
func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(RawBytesMax), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(fmt.Sprintf("body: zstd refuses the encoder's options: %v", err))
	}
	return e
}

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(RawBytesMax))
	if err != nil {
		panic(fmt.Sprintf("body: zstd refuses the decoder's options: %v", err))
	}
	return d
}

// seal returns version byte, nonce, and the compressed raw bytes sealed under the key.
func (c *codec) seal(aead cipher.AEAD, id webhook.BodyID, keyID string, raw []byte) ([]byte, error) {
	p, pooled := c.packers.Get().(*packer)
	if !pooled {
		p = &packer{encoder: newEncoder()}
	}
	defer c.packers.Put(p)
	packed := p.encoder.EncodeAll(raw, p.buffer[:0])
	if p.buffer = packed; cap(packed) > packedBytesKept {
		p.buffer = nil
	}
	sealed := make([]byte, 1+nonceSize, 1+nonceSize+len(packed)+aead.Overhead())
	sealed[0] = sealVersion
	if _, err := io.ReadFull(c.rand, sealed[1:]); err != nil {
		return nil, ours("random", "read", err)
	}
	return aead.Seal(sealed, sealed[1:], packed, additional(id, keyID)), nil
}

// open is the inverse of seal. It trusts nothing before the tag, and unpacks at
// most [RawBytesMax] after it.
func (c *codec) open(aead cipher.AEAD, id webhook.BodyID, keyID string, sealed []byte) ([]byte, error) {
	if len(sealed) < sealedBytesMin || sealed[0] != sealVersion {
		return nil, ErrCorrupt
	}
	packed, err := aead.Open(nil, sealed[1:1+nonceSize], sealed[1+nonceSize:], additional(id, keyID))
	if err != nil {
		return nil, ErrCorrupt
	}
	d, pooled := c.decoders.Get().(*zstd.Decoder)
	if !pooled {
		d = newDecoder()
	}
	defer c.decoders.Put(d)
	raw, err := d.DecodeAll(packed, nil)
	if err != nil || len(raw) > RawBytesMax {
		return nil, ErrCorrupt
	}
	return raw, nil
}

// additional returns the additional data: version, and the ids with their
// lengths, so that no two pairs of ids read the same.
func additional(id webhook.BodyID, keyID string) []byte {
	data := make([]byte, 0, 1+16+len(id)+len(keyID))
	data = append(data, sealVersion)
	data = binary.BigEndian.AppendUint64(data, uint64(len(id)))
	data = append(data, id...)
	data = binary.BigEndian.AppendUint64(data, uint64(len(keyID)))
	return append(data, keyID...)
}
