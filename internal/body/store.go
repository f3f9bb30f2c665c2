package body

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"dakghar/internal/webhook"
)

// KMS is the part of the key service that data keys need.
type KMS interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Config is what a [Store] is built from. Zero values take the defaults named
// beside them; clients and names have none.
type Config struct {
	Dynamo Dynamo
	S3     S3
	KMS    KMS
	Table  string
	Bucket string
	// KeyID names the KMS key that wraps data keys.
	KeyID string

	// InlineBytes is the largest sealed body kept in its row: 32,768. A row holds
	// 400 KB at most.
	InlineBytes int
	// Life is how long a body is kept from its receipt: 30 days.
	Life time.Duration

	// Now is the clock for the age of keys; time.Now when nil.
	Now func() time.Time
	// Rand feeds nonces and, unless NewID is set, ids; crypto/rand when nil.
	Rand io.Reader
	// NewID names data keys and objects; it must never repeat. 128 random bits when nil.
	NewID func() string

	// KeySoft is the age from which a data key is replaced in the background: 30 minutes.
	KeySoft time.Duration
	// KeyHard is the age from which no data key is used without KMS: 1 hour.
	KeyHard time.Duration
	// KeySealsMax bounds the bodies sealed under one data key: 2^20, far below
	// what random 96 bit nonces allow.
	KeySealsMax int
	// KeysMax bounds the data keys held, for sealing and for opening each: 1,024.
	KeysMax int
	// KeyTimeout bounds the calls that bring a data key, together: 800 ms.
	KeyTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default of the argument
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.NewID == nil {
		c.NewID = randomID(c.Rand)
	}
	c.InlineBytes = or(c.InlineBytes, 32<<10)
	c.Life = or(c.Life, 30*24*time.Hour)
	c.KeySoft = or(c.KeySoft, 30*time.Minute)
	c.KeyHard = or(c.KeyHard, time.Hour)
	c.KeySealsMax = or(c.KeySealsMax, 1<<20)
	c.KeysMax = or(c.KeysMax, 1024)
	c.KeyTimeout = or(c.KeyTimeout, 800*time.Millisecond)
	return c
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func randomID(random io.Reader) func() string {
	return func() string {
		var b [16]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			panic(fmt.Sprintf("body: no randomness: %v", err))
		}
		return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
	}
}

// Store keeps bodies. It is safe for concurrent use.
type Store struct {
	cfg     Config
	rows    rows
	objects objects
	ring    *ring
	codec   *codec
}

// New returns a store. It makes no call.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg.withDefaults()}
	s.rows = rows{db: s.cfg.Dynamo, table: s.cfg.Table}
	s.objects = objects{client: s.cfg.S3, bucket: s.cfg.Bucket, newID: s.cfg.NewID}
	s.ring = newRing(&s.cfg, s.rows)
	s.codec = &codec{rand: s.cfg.Rand}
	return s
}

// valid reports whether b can be stored: its ids, its time of receipt, its size.
func valid(b webhook.Body) bool {
	return b.ID != "" && b.InboxID != "" && b.PutID != "" && !b.At.IsZero() && len(b.Raw) <= RawBytesMax
}

// expiryMargin is how much later than told the table may sweep a row.
const expiryMargin = time.Hour

// Expiry returns the end of the life of a body received at a time, in whole
// seconds: what [Store.Put] and [Store.Renew] write for it.
func (s *Store) Expiry(received time.Time) time.Time {
	return time.Unix(received.Add(s.cfg.Life).Unix(), 0).UTC()
}

// Put stores a body if it is absent; its Raw is read during the call only. If
// it exists, nothing is written, and the caller reads the inbox row of its
// event: present, the request is a duplicate; absent, he must [Store.Renew]. A
// [webhook.Body.Lasting] one takes the place of bytes that end too soon. After an
// error the body may be there.
func (s *Store) Put(ctx context.Context, b webhook.Body) (webhook.Placed, error) {
	r, err := s.seal(ctx, b)
	if err != nil {
		return webhook.Placed{}, err
	}
	if s.large(r) {
		// Worth a look first: most repeats of a large body then cost no upload.
		switch existing, found, err := s.rows.get(ctx, b.ID); {
		case err != nil:
			return webhook.Placed{}, err
		case found && existing.expires >= s.atLeast(b):
			return placed(b, existing), nil
		}
		if r, err = s.moveOut(ctx, b, r); err != nil {
			return webhook.Placed{}, err
		}
	}
	stored, err := s.rows.insert(ctx, r, s.atLeast(b))
	if err != nil {
		return webhook.Placed{}, err
	}
	return placed(b, stored), nil
}

// lastingSlack is how much less than a whole life is left of bytes that will do
// where a lasting body is put.
const lastingSlack = 24 * time.Hour

// atLeast is the expiry below which a row that is there does not do for b, epoch
// seconds; 0 where any does.
func (s *Store) atLeast(b webhook.Body) int64 {
	if !b.Lasting {
		return 0
	}
	return s.Expiry(b.At).Add(expiryMargin - lastingSlack).Unix()
}

// placed reads a row as the answer to b. A row with b's own put_id is b's: its
// reply was lost, or the caller asks again. Existed says that another request
// stored or renewed these bytes; their life may be over already.
func placed(b webhook.Body, r row) webhook.Placed {
	return webhook.Placed{
		ExpiresAt:  time.Unix(r.expires, 0).Add(-expiryMargin).UTC(),
		Existed:    r.putID != b.PutID,
		FirstInbox: or(r.first, b.InboxID),
	}
}

// Renew gives an existing body a new life from b's receipt, as b's own. It
// reports false when there is no row any more, and raises none: the caller puts
// again. What it returns has no FirstInbox: that is [Store.Put]'s to say. After
// an error the body may be renewed.
func (s *Store) Renew(ctx context.Context, b webhook.Body) (webhook.Placed, bool, error) {
	r, err := s.seal(ctx, b)
	if err != nil {
		return webhook.Placed{}, false, err
	}
	if s.large(r) {
		if r, err = s.moveOut(ctx, b, r); err != nil {
			return webhook.Placed{}, false, err
		}
	}
	r.renewed = b.At.Unix()
	renewed, err := s.rows.renew(ctx, r)
	if err != nil || !renewed {
		return webhook.Placed{}, false, err
	}
	return webhook.Placed{ExpiresAt: s.Expiry(b.At), Existed: true}, true, nil
}

// Remove deletes a body, but only if putID wrote or renewed it last; anything
// else is somebody else's body, and no error.
func (s *Store) Remove(ctx context.Context, id webhook.BodyID, putID string) error {
	removed, ok, err := s.rows.remove(ctx, id, putID)
	if err != nil || !ok || removed.ref == "" {
		return err
	}
	return s.objects.delete(ctx, removed.ref)
}

// seal returns the row for b, with its sealed bytes.
func (s *Store) seal(ctx context.Context, b webhook.Body) (row, error) {
	if !valid(b) {
		return row{}, ErrInvalid
	}
	k, err := s.ring.forSealing(ctx, b.Tenant)
	if err != nil {
		return row{}, err
	}
	sealed, err := s.codec.seal(k.aead, b.ID, k.id, b.Raw)
	return row{
		id: b.ID, sealed: sealed, keyID: k.id, putID: b.PutID, first: b.InboxID,
		expires: s.Expiry(b.At).Add(expiryMargin).Unix(),
	}, err
}

func (s *Store) large(r row) bool { return len(r.sealed) > s.cfg.InlineBytes }

// moveOut uploads the row's bytes and returns the row with a reference in their place.
func (s *Store) moveOut(ctx context.Context, b webhook.Body, r row) (row, error) {
	ref, err := s.objects.upload(ctx, b, r.sealed)
	r.ref, r.sealed = ref, nil
	return r, err
}

// Open returns the raw bytes of a body, only if they have this digest. A body
// that is over but not swept yet opens. Errors are [ErrMissing], [ErrCorrupt]
// and [ErrKeyMissing], all permanent, or of kind ours.
func (s *Store) Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error) {
	r, found, err := s.rows.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, ErrMissing
	}
	if r.ref != "" {
		if r.sealed, err = s.objects.download(ctx, r.ref); err != nil {
			return nil, err
		}
	}
	if r.keyID == "" || len(r.sealed) < sealedBytesMin {
		return nil, ErrCorrupt
	}
	aead, err := s.ring.forOpening(ctx, place{tenant: tenant, id: r.keyID})
	if err != nil {
		return nil, err
	}
	raw, err := s.codec.open(aead, id, r.keyID, r.sealed)
	if err != nil {
		return nil, err
	}
	if webhook.DigestOf(raw) != digest {
		return nil, ErrCorrupt
	}
	return raw, nil
}
