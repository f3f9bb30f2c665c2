package body_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"dakghar/internal/body"
)

type item = map[string]types.AttributeValue

// world is the three services as far as this package uses them, with hooks for
// faults and rivals around each call. Hooks run without the lock.
type world struct {
	mu      sync.Mutex
	items   map[string]item
	objects map[string][]byte
	master  cipher.AEAD
	calls   []string // "PutItem bd_…", in order

	// before runs ahead of a call; its error is the answer and nothing happens.
	before func(ctx context.Context, n int, op string) error
	// after runs behind a call that had its effect; its error is a lost reply.
	after func(n int, op string) error
	// late is a call that reports a fault now and has its effect when landed.
	lateAt int
	late   func() error
	// twice makes the SDK's own retry visible: each call runs twice, the first reply is lost.
	twice bool
}

func newWorld() *world {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	master, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return &world{items: map[string]item{}, objects: map[string][]byte{}, master: master}
}

func (w *world) do(ctx context.Context, op string, act func() error) error {
	w.mu.Lock()
	n := len(w.calls)
	w.calls = append(w.calls, op)
	w.mu.Unlock()
	if w.before != nil {
		if err := w.before(ctx, n, op); err != nil {
			return err
		}
	}
	if w.lateAt > 0 && n == w.lateAt-1 {
		w.late = act
		return errLost
	}
	w.mu.Lock()
	err := act()
	if w.twice {
		err = act()
	}
	w.mu.Unlock()
	if w.after != nil {
		if lost := w.after(n, op); lost != nil {
			return lost
		}
	}
	return err
}

var errLost = errors.New("connection reset")

// land lets the late call have its effect.
func (w *world) land() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late != nil {
		_ = w.late() // nobody is left to hear its answer
	}
}

func (w *world) count(prefix string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// sweep is the table's time to live: it takes what is over at a time.
func (w *world) sweep(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, it := range w.items {
		if x, _ := strconv.ParseInt(it["x"].(*types.AttributeValueMemberN).Value, 10, 64); x < now.Unix() {
			delete(w.items, id)
		}
	}
}

// storedBytes is every byte string that the services hold, names included.
func (w *world) storedBytes() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all [][]byte
	for _, it := range w.items {
		for name, v := range it {
			all = append(all, []byte(name))
			switch v := v.(type) {
			case *types.AttributeValueMemberB:
				all = append(all, v.Value)
			case *types.AttributeValueMemberS:
				all = append(all, []byte(v.Value))
			case *types.AttributeValueMemberN:
				all = append(all, []byte(v.Value))
			}
		}
	}
	for name, o := range w.objects {
		all = append(all, []byte(name), o)
	}
	return all
}

func idOf(it item) string { return it["id"].(*types.AttributeValueMemberS).Value }

var refused = &types.ConditionalCheckFailedException{}

func (w *world) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out := &dynamodb.GetItemOutput{}
	err := w.do(ctx, "GetItem "+idOf(in.Key), func() error {
		if !aws.ToBool(in.ConsistentRead) {
			return fmt.Errorf("an inconsistent read")
		}
		out.Item = maps.Clone(w.items[idOf(in.Key)])
		return nil
	})
	return out, err
}

func (w *world) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	err := w.do(ctx, "PutItem "+idOf(in.Item), func() error {
		old := w.items[idOf(in.Item)]
		switch *in.ConditionExpression {
		case "attribute_not_exists(id)":
		case "attribute_not_exists(id) OR x < :x":
			if old != nil && expiryOf(old["x"]) < expiryOf(in.ExpressionAttributeValues[":x"]) {
				old = nil
			}
		default:
			return fmt.Errorf("an unknown condition")
		}
		if old != nil {
			failed := &types.ConditionalCheckFailedException{}
			if in.ReturnValuesOnConditionCheckFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
				failed.Item = maps.Clone(old)
			}
			return failed
		}
		w.items[idOf(in.Item)] = maps.Clone(in.Item)
		return nil
	})
	return &dynamodb.PutItemOutput{}, err
}

func expiryOf(v types.AttributeValue) int64 {
	n, _ := strconv.ParseInt(v.(*types.AttributeValueMemberN).Value, 10, 64)
	return n
}

func (w *world) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	err := w.do(ctx, "UpdateItem "+idOf(in.Key), func() error {
		it := w.items[idOf(in.Key)]
		switch {
		case *in.ConditionExpression != "attribute_exists(id)":
			return fmt.Errorf("an unknown condition")
		case it == nil:
			return refused
		}
		it = maps.Clone(it)
		v := in.ExpressionAttributeValues
		it["x"], it["t"], it["p"], it["k"] = v[":x"], v[":t"], v[":p"], v[":k"]
		if it["i"] == nil {
			it["i"] = v[":i"]
		}
		switch *in.UpdateExpression {
		case "SET x = :x, t = :t, p = :p, k = :k, i = if_not_exists(i, :i), z = :c REMOVE r":
			it["z"] = v[":c"]
			delete(it, "r")
		case "SET x = :x, t = :t, p = :p, k = :k, i = if_not_exists(i, :i), r = :c REMOVE z":
			it["r"] = v[":c"]
			delete(it, "z")
		default:
			return fmt.Errorf("an unknown update")
		}
		w.items[idOf(in.Key)] = it
		return nil
	})
	return &dynamodb.UpdateItemOutput{}, err
}

func (w *world) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	out := &dynamodb.DeleteItemOutput{}
	err := w.do(ctx, "DeleteItem "+idOf(in.Key), func() error {
		it := w.items[idOf(in.Key)]
		if *in.ConditionExpression != "p = :p" {
			return fmt.Errorf("an unknown condition")
		}
		want := in.ExpressionAttributeValues[":p"].(*types.AttributeValueMemberS).Value
		if p, ok := it["p"].(*types.AttributeValueMemberS); !ok || p.Value != want {
			return refused
		}
		out.Attributes = it
		delete(w.items, idOf(in.Key))
		return nil
	})
	return out, err
}

func (w *world) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	content, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	err = w.do(ctx, "PutObject "+*in.Key, func() error {
		if aws.ToString(in.IfNoneMatch) != "*" || aws.ToInt64(in.ContentLength) != int64(len(content)) {
			return fmt.Errorf("an unconditional upload, or one of another length")
		}
		if _, taken := w.objects[*in.Key]; taken {
			return &smithy.GenericAPIError{Code: "PreconditionFailed"}
		}
		w.objects[*in.Key] = content
		return nil
	})
	return &s3.PutObjectOutput{}, err
}

func (w *world) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	var out *s3.GetObjectOutput
	err := w.do(ctx, "GetObject "+*in.Key, func() error {
		content, ok := w.objects[*in.Key]
		if !ok {
			return &s3types.NoSuchKey{}
		}
		out = &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(content))}
		return nil
	})
	return out, err
}

func (w *world) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	err := w.do(ctx, "DeleteObject "+*in.Key, func() error { delete(w.objects, *in.Key); return nil })
	return &s3.DeleteObjectOutput{}, err
}

const kmsKey = "arn:aws:kms:us-east-1:000000000000:key/data"

func contextOf(m map[string]string) []byte { return fmt.Appendf(nil, "%q", m) } // fmt sorts keys

func (w *world) GenerateDataKey(ctx context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	var out *kms.GenerateDataKeyOutput
	err := w.do(ctx, "GenerateDataKey", func() error {
		if *in.KeyId != kmsKey || in.KeySpec != kmstypes.DataKeySpecAes256 {
			return &kmstypes.NotFoundException{}
		}
		plain, nonce := make([]byte, 32), make([]byte, 12)
		_, _ = rand.Read(plain)
		_, _ = rand.Read(nonce)
		out = &kms.GenerateDataKeyOutput{Plaintext: plain, CiphertextBlob: w.master.Seal(nonce, nonce, plain, contextOf(in.EncryptionContext))}
		return nil
	})
	return out, err
}

func (w *world) Decrypt(ctx context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	var out *kms.DecryptOutput
	err := w.do(ctx, "Decrypt", func() error {
		if len(in.CiphertextBlob) < 12 {
			return &kmstypes.InvalidCiphertextException{}
		}
		plain, err := w.master.Open(nil, in.CiphertextBlob[:12], in.CiphertextBlob[12:], contextOf(in.EncryptionContext))
		if err != nil {
			return &kmstypes.InvalidCiphertextException{}
		}
		out = &kms.DecryptOutput{Plaintext: plain}
		return nil
	})
	return out, err
}

// config returns a store's parts on this world, as one process has them.
func (w *world) config() body.Config {
	return body.Config{Dynamo: w, S3: w, KMS: w, Table: "Body", Bucket: "bodies", KeyID: kmsKey, Now: time.Now}
}

func (w *world) store() *body.Store { return body.New(w.config()) }

// edit changes a stored item in place, as somebody with access to the table could.
func (w *world) edit(t *testing.T, id string, change func(item)) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	it := maps.Clone(w.items[id])
	if it == nil {
		t.Fatalf("no row %s", id)
	}
	change(it)
	w.items[id] = it
}
