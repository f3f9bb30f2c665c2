package bench

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	"dakghar/internal/webhook"
)

// bare does by hand, and without any care, what accepting an event cannot do
// without: one decoding of Lambda's event, one MAC, one compression, one seal,
// and the same two calls with the same client. Ids come from outside.
type bare struct {
	db                    *dynamodb.Client
	bodies, inbox, outbox string
	key                   []byte
	aead                  cipher.AEAD
	encoder               *zstd.Encoder
	packed                []byte
}

func newBare(t *testing.T, s *site) *bare {
	t.Helper()
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	return &bare{
		db: s.db, bodies: s.bodyTable, inbox: s.tables.Inbox, outbox: s.tables.Outbox, key: []byte(secretText), aead: aead, encoder: encoder,
	}
}

// decode reads Lambda's event: the signature header and the body.
type decode func(payload []byte) (signature string, body []byte, err error)

// decodeAlike decodes as ingress does, with the same library and no more members.
func decodeAlike(payload []byte) (string, []byte, error) {
	var event struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	err := json.Unmarshal(payload, &event)
	return event.Headers["stripe-signature"], []byte(event.Body), err
}

// decodeWithID also reads from the body what no receiver can do without.
func decodeWithID(payload []byte) (string, []byte, error) {
	signature, body, err := decodeAlike(payload)
	if err != nil {
		return "", nil, err
	}
	var envelope struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	err = json.Unmarshal(body, &envelope)
	return signature, body, err
}

// decodeTyped decodes as aws-lambda-go does for a handler that takes its event type.
func decodeTyped(payload []byte) (string, []byte, error) {
	var event events.APIGatewayV2HTTPRequest
	err := stdjson.Unmarshal(payload, &event)
	return event.Headers["stripe-signature"], []byte(event.Body), err
}

// accept does the work for one event.
func (b *bare) accept(ctx context.Context, payload []byte, n int, read decode) error {
	signature, body, err := read(payload)
	if err != nil {
		return err
	}
	if !b.verify(signature, body) {
		return errors.New("the signature is not ours")
	}
	sealed, err := b.seal(body)
	if err != nil {
		return err
	}
	return b.store(ctx, newRows(n, sealed))
}

// verify checks "t=<seconds>,v1=<hex>".
func (b *bare) verify(header string, body []byte) bool {
	at, signature, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	given, err := hex.DecodeString(signature)
	mac := hmac.New(sha256.New, b.key)
	mac.Write([]byte(at))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

func (b *bare) seal(body []byte) ([]byte, error) {
	b.packed = b.encoder.EncodeAll(body, b.packed[:0])
	nonce := b.aead.NonceSize()
	sealed := make([]byte, 1+nonce, 1+nonce+len(b.packed)+b.aead.Overhead())
	if _, err := rand.Read(sealed[1:]); err != nil {
		return nil, err
	}
	return b.aead.Seal(sealed, sealed[1:], b.packed, sealed[:1]), nil
}

type item = map[string]types.AttributeValue

// rows are the three rows of one event, with the attributes that ingress writes.
type rows struct{ body, inbox, outbox item }

func newRows(n int, sealed []byte) rows {
	now := time.Now()
	sum := sha256.Sum256(strconv.AppendInt(nil, int64(n), 10)) // keys that lie as far apart as ingress's own
	id := hex.EncodeToString(sum[:20])
	inbox, body, at := "in_"+id, "bd_"+id, number64(now.UnixMilli())
	return rows{
		body: item{
			"id": text(body), "z": &types.AttributeValueMemberB{Value: sealed}, "k": text("AAAAAAAAAAAAAAAAAAAAAAAAAA"), "p": text("AAAAAAAAAAAAAAAAAAAAAAAAAA"),
			"i": text(inbox), "x": number64(now.Unix() + 30*24*3600),
		},
		inbox: item{
			"id": text(inbox), "p": text("stripe"), "e": text(string(endpoint)), "tn": text(string(tenant)), "ei": text("evt_000000000000"),
			"et": text("payment_intent.succeeded"), "oi": text("pi_000000000000"), "pc": at, "ra": at, "na": at, "bi": text(body),
			"bx": number64(now.UnixMilli()), "dg": &types.AttributeValueMemberB{Value: make([]byte, sha256.Size)},
			"mv": text("00000000-0000-4000-8000-000000000000"), "st": text("RECEIVED"), "f": number64(0), "ac": number64(0),
			"rk": text(string(endpoint) + "#20260301#" + strconv.Itoa(n%webhook.Shards)),
		},
		outbox: item{
			"id": text(inbox + "#process#0"), "ii": text(inbox), "tp": text("process"), "ca": at, "g": number64(0), "du": at, "wa": at, "w": number64(0),
		},
	}
}

// store makes the two calls of an accepted event.
func (b *bare) store(ctx context.Context, r rows) error {
	_, err := b.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &b.bodies, Item: r.body, ConditionExpression: aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return err
	}
	_, err = b.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{
			TableName: &b.inbox, Item: r.inbox, ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
		{Put: &types.Put{TableName: &b.outbox, Item: r.outbox}},
	}})
	return err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number64(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
