package kms_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/devstack/kms"
	"dakghar/internal/devstack/wiretest"
)

// The suite is what sealed bodies rest on (requirement D6): a data key comes back
// under the same context, and under no other.

func TestEmbedded(t *testing.T) {
	wiretest.Embedded(t, func(testing.TB) http.Handler { return kms.New(kms.Config{}) }, checks())
}

func TestMoto(t *testing.T) { wiretest.Moto(t, checks(), motoDiffers) }

// motoDiffers lists what moto 5.2.1 answers differently, and why we do not follow it.
var motoDiffers = map[string]string{
	"a key is symmetric, enabled and found by id and ARN":         "KeyUsage and MultiRegion are missing",
	"an answer to Decrypt names the algorithm":                    "EncryptionAlgorithm is missing",
	"contexts whose texts run together the same are not the same": "moto joins names and values without lengths, so one context opens the other's key",
	"a data key opens under its own key only":                     "refused with AccessDeniedException",
	"a ciphertext over the limit is refused":                      "the limit is not checked",
	"what the local stack does not do is refused, not ignored":    "moto ignores DryRun and has all calls",
}

func checks() []wiretest.Check {
	var all []wiretest.Check
	for _, c := range kmsChecks {
		all = append(all, wiretest.Check{Name: c.name, Run: func(t testing.TB, e wiretest.Endpoint) { c.run(t, newClient(t, e)) }})
	}
	return all
}

// client is the SDK's client with short forms for what the checks say often.
type client struct {
	*sdk.Client
	t   testing.TB
	ctx context.Context
}

func newClient(t testing.TB, e wiretest.Endpoint) *client {
	return &client{t: t, ctx: t.Context(), Client: sdk.New(sdk.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(e.URL),
		HTTPClient:   e.Client,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		Retryer:      aws.NopRetryer{},
	})}
}

func (c *client) create() *types.KeyMetadata {
	c.t.Helper()
	out, err := c.CreateKey(c.ctx, &sdk.CreateKeyInput{Description: aws.String("bodies")})
	c.must(err)
	return out.KeyMetadata
}

func (c *client) dataKey(keyID *string, context map[string]string) *sdk.GenerateDataKeyOutput {
	c.t.Helper()
	out, err := c.GenerateDataKey(c.ctx, &sdk.GenerateDataKeyInput{KeyId: keyID, KeySpec: types.DataKeySpecAes256, EncryptionContext: context})
	c.must(err)
	return out
}

func (c *client) open(blob []byte, context map[string]string) (*sdk.DecryptOutput, error) {
	return c.Decrypt(c.ctx, &sdk.DecryptInput{CiphertextBlob: blob, EncryptionContext: context})
}

func (c *client) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("unexpected error: %v", err)
	}
}

func (c *client) mustRefuse(err error, code string) {
	c.t.Helper()
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		c.t.Fatalf("got %v, want a refusal with %s", err, code)
	}
	if refused.ErrorCode() != code {
		c.t.Errorf("refused with %s (%s), want %s", refused.ErrorCode(), refused.ErrorMessage(), code)
	}
}

var kmsChecks = []struct {
	name string
	run  func(t testing.TB, c *client)
}{
	{"a key is symmetric, enabled and found by id and ARN", func(t testing.TB, c *client) {
		made := c.create()
		want := &types.KeyMetadata{
			AWSAccountId: made.AWSAccountId, KeyId: made.KeyId, CreationDate: made.CreationDate,
			Arn:                   aws.String("arn:aws:kms:us-east-1:" + *made.AWSAccountId + ":key/" + *made.KeyId),
			Enabled:               true,
			Description:           aws.String("bodies"),
			KeyUsage:              types.KeyUsageTypeEncryptDecrypt,
			KeyState:              types.KeyStateEnabled,
			Origin:                types.OriginTypeAwsKms,
			KeyManager:            types.KeyManagerTypeCustomer,
			CustomerMasterKeySpec: types.CustomerMasterKeySpecSymmetricDefault, //nolint:staticcheck // the service still sends it
			KeySpec:               types.KeySpecSymmetricDefault,
			EncryptionAlgorithms:  []types.EncryptionAlgorithmSpec{types.EncryptionAlgorithmSpecSymmetricDefault},
			MultiRegion:           aws.Bool(false),
		}
		for _, id := range []*string{made.KeyId, made.Arn} {
			got, err := c.DescribeKey(c.ctx, &sdk.DescribeKeyInput{KeyId: id})
			c.must(err)
			if diff := cmp.Diff(want, got.KeyMetadata, cmpopts.IgnoreUnexported(types.KeyMetadata{})); diff != "" {
				t.Errorf("key (-want +got):\n%s", diff)
			}
		}
		if age := time.Since(*made.CreationDate); age < -time.Minute || age > time.Minute {
			t.Errorf("the key was created %v ago", age)
		}
	}},
	{"a data key comes back under the same context, with and without the key's id", func(t testing.TB, c *client) {
		k := c.create()
		context := map[string]string{"tenant": "t1", "purpose": "body"}
		data := c.dataKey(k.Arn, context)
		if len(data.Plaintext) != 32 || *data.KeyId != *k.Arn || bytes.Contains(data.CiphertextBlob, data.Plaintext) {
			t.Errorf("the data key has %d bytes under %s", len(data.Plaintext), *data.KeyId)
		}
		for _, id := range []*string{nil, k.KeyId, k.Arn} {
			got, err := c.Decrypt(c.ctx, &sdk.DecryptInput{CiphertextBlob: data.CiphertextBlob, EncryptionContext: context, KeyId: id})
			c.must(err)
			want := &sdk.DecryptOutput{KeyId: k.Arn, Plaintext: data.Plaintext}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(sdk.DecryptOutput{}),
				cmpopts.IgnoreFields(sdk.DecryptOutput{}, "EncryptionAlgorithm", "ResultMetadata")); diff != "" {
				t.Errorf("decrypted (-want +got):\n%s", diff)
			}
		}
	}},
	{"an answer to Decrypt names the algorithm", func(t testing.TB, c *client) {
		got, err := c.open(c.dataKey(c.create().KeyId, nil).CiphertextBlob, nil)
		c.must(err)
		if got.EncryptionAlgorithm != types.EncryptionAlgorithmSpecSymmetricDefault {
			t.Errorf("the algorithm is %q", got.EncryptionAlgorithm)
		}
	}},
	{"every data key and every wrapping is new", func(t testing.TB, c *client) {
		k := c.create()
		a, b := c.dataKey(k.KeyId, nil), c.dataKey(k.KeyId, nil)
		if bytes.Equal(a.Plaintext, b.Plaintext) || bytes.Equal(a.CiphertextBlob, b.CiphertextBlob) {
			t.Error("two data keys are the same")
		}
	}},
	{"another context does not open a data key", func(t testing.TB, c *client) {
		k := c.create()
		data := c.dataKey(k.KeyId, map[string]string{"tenant": "t1", "purpose": "body"})
		for _, wrong := range []map[string]string{
			nil,
			{"tenant": "t1"},
			{"tenant": "t2", "purpose": "body"},
			{"tenant": "t1", "purpose": "body", "more": "x"},
			{"Tenant": "t1", "purpose": "body"},
			{"tenant": "body", "purpose": "t1"},
		} {
			_, err := c.open(data.CiphertextBlob, wrong)
			c.mustRefuse(err, "InvalidCiphertextException")
		}
		_, err := c.open(c.dataKey(k.KeyId, nil).CiphertextBlob, map[string]string{"tenant": "t1"})
		c.mustRefuse(err, "InvalidCiphertextException")
	}},
	{"contexts whose texts run together the same are not the same", func(t testing.TB, c *client) {
		k := c.create()
		for _, pair := range [][2]map[string]string{
			{{"ab": "c", "d": "ef"}, {"a": "bc", "de": "f"}},
			{{"a": "b", "c": "d"}, {"a": "b\x00\x00\x00\x00c\x00\x00\x00\x00d"}},
		} {
			data := c.dataKey(k.KeyId, pair[0])
			_, err := c.open(data.CiphertextBlob, pair[1])
			c.mustRefuse(err, "InvalidCiphertextException")
		}
	}},
	{"a ciphertext that was changed, cut or made up is refused", func(t testing.TB, c *client) {
		k := c.create()
		blob := c.dataKey(k.KeyId, nil).CiphertextBlob
		last := bytes.Clone(blob)
		last[len(last)-1] ^= 1
		for _, bad := range [][]byte{last, blob[:len(blob)-1], blob[:40], {1}, {1, 200, 3}, []byte("made up")} {
			_, err := c.open(bad, nil)
			c.mustRefuse(err, "InvalidCiphertextException")
		}
	}},
	{"a data key opens under its own key only", func(t testing.TB, c *client) {
		mine, other := c.create(), c.create()
		data := c.dataKey(mine.KeyId, nil)
		_, err := c.Decrypt(c.ctx, &sdk.DecryptInput{CiphertextBlob: data.CiphertextBlob, KeyId: other.KeyId})
		c.mustRefuse(err, "IncorrectKeyException")
	}},
	{"a data key has the size that was asked for", func(t testing.TB, c *client) {
		k := c.create()
		for _, size := range []int32{1, 32, 64, 1024} {
			out, err := c.GenerateDataKey(c.ctx, &sdk.GenerateDataKeyInput{KeyId: k.KeyId, NumberOfBytes: &size})
			c.must(err)
			back, err := c.open(out.CiphertextBlob, nil)
			c.must(err)
			if len(out.Plaintext) != int(size) || !bytes.Equal(out.Plaintext, back.Plaintext) {
				t.Errorf("asked for %d bytes, got %d, and %d back", size, len(out.Plaintext), len(back.Plaintext))
			}
		}
		out, err := c.GenerateDataKey(c.ctx, &sdk.GenerateDataKeyInput{KeyId: k.KeyId, KeySpec: types.DataKeySpecAes128})
		c.must(err)
		if len(out.Plaintext) != 16 {
			t.Errorf("AES_128 has %d bytes", len(out.Plaintext))
		}
	}},
	{"a size that is none is refused", func(t testing.TB, c *client) {
		k := c.create()
		for _, in := range []sdk.GenerateDataKeyInput{
			{},
			{KeySpec: types.DataKeySpecAes256, NumberOfBytes: aws.Int32(32)},
			{KeySpec: "AES_512"},
			{NumberOfBytes: aws.Int32(0)},
			{NumberOfBytes: aws.Int32(1025)},
		} {
			in.KeyId = k.KeyId
			_, err := c.GenerateDataKey(c.ctx, &in)
			c.mustRefuse(err, "ValidationException")
		}
	}},
	{"a key that does not exist is not found", func(t testing.TB, c *client) {
		absent := aws.String("11111111-2222-4333-8444-555555555555")
		_, err := c.DescribeKey(c.ctx, &sdk.DescribeKeyInput{KeyId: absent})
		c.mustRefuse(err, "NotFoundException")
		_, err = c.GenerateDataKey(c.ctx, &sdk.GenerateDataKeyInput{KeyId: absent, KeySpec: types.DataKeySpecAes256})
		c.mustRefuse(err, "NotFoundException")
	}},
	{"a ciphertext over the limit is refused", func(t testing.TB, c *client) {
		c.create()
		_, err := c.open(bytes.Repeat([]byte{1}, kms.CiphertextBytesMax+1), nil)
		c.mustRefuse(err, "ValidationException")
	}},
	{"what the local stack does not do is refused, not ignored", func(t testing.TB, c *client) {
		k := c.create()
		_, err := c.GenerateDataKey(c.ctx, &sdk.GenerateDataKeyInput{KeyId: k.KeyId, KeySpec: types.DataKeySpecAes256, DryRun: aws.Bool(true)})
		c.mustRefuse(err, "UnsupportedParameter")
		_, err = c.CreateKey(c.ctx, &sdk.CreateKeyInput{KeySpec: types.KeySpecRsa2048, KeyUsage: types.KeyUsageTypeSignVerify})
		c.mustRefuse(err, "UnsupportedOperationException")
		_, err = c.DescribeKey(c.ctx, &sdk.DescribeKeyInput{KeyId: aws.String("alias/bodies")})
		c.mustRefuse(err, "NotFoundException")
		_, err = c.Encrypt(c.ctx, &sdk.EncryptInput{KeyId: k.KeyId, Plaintext: []byte("x")})
		c.mustRefuse(err, "UnknownOperationException")
		_, err = c.Decrypt(c.ctx, &sdk.DecryptInput{CiphertextBlob: []byte("x"), EncryptionAlgorithm: types.EncryptionAlgorithmSpecRsaesOaepSha256})
		c.mustRefuse(err, "InvalidKeyUsageException")
	}},
}

// bubble runs f with a server of its own.
func bubble(t *testing.T, cfg kms.Config, f func(t *testing.T, s *kms.Server, c *client)) {
	synctest.Test(t, func(t *testing.T) {
		s := kms.New(cfg)
		f(t, s, newClient(t, wiretest.Serve(t, s)))
	})
}

func TestDisabledKeyWrapsAndOpensNothingUntilItIsEnabled(t *testing.T) {
	bubble(t, kms.Config{}, func(t *testing.T, s *kms.Server, c *client) {
		k := c.create()
		data := c.dataKey(k.Arn, nil)
		if !s.SetEnabled(*k.KeyId, false) {
			t.Fatal("the key is not known by its id")
		}
		_, err := c.GenerateDataKey(c.ctx, &sdk.GenerateDataKeyInput{KeyId: k.Arn, KeySpec: types.DataKeySpecAes256})
		c.mustRefuse(err, "DisabledException")
		_, err = c.open(data.CiphertextBlob, nil)
		c.mustRefuse(err, "DisabledException")
		out, err := c.DescribeKey(c.ctx, &sdk.DescribeKeyInput{KeyId: k.Arn})
		c.must(err)
		if out.KeyMetadata.Enabled || out.KeyMetadata.KeyState != types.KeyStateDisabled {
			t.Errorf("the key shows %v, %s", out.KeyMetadata.Enabled, out.KeyMetadata.KeyState)
		}
		if !s.SetEnabled(*k.Arn, true) {
			t.Fatal("the key is not known by its ARN")
		}
		if _, err := c.open(data.CiphertextBlob, nil); err != nil {
			t.Errorf("after it was enabled: %v", err)
		}
		if s.SetEnabled("absent", true) {
			t.Error("a key that does not exist was enabled")
		}
	})
}

func TestIdentityAndRandomnessAreInjected(t *testing.T) {
	cfg := kms.Config{
		Region: "eu-west-1", AccountID: "111122223333",
		NewID:  func() string { return "key-1" },
		Random: bytes.NewReader(bytes.Repeat([]byte{7}, 32+32+12)),
	}
	bubble(t, cfg, func(t *testing.T, _ *kms.Server, c *client) {
		k := c.create()
		if *k.Arn != "arn:aws:kms:eu-west-1:111122223333:key/key-1" {
			t.Errorf("the ARN is %s", *k.Arn)
		}
		if data := c.dataKey(k.KeyId, nil); !bytes.Equal(data.Plaintext, bytes.Repeat([]byte{7}, 32)) {
			t.Error("the data key is not what the source gave")
		}
	})
}

// A source of randomness that fails must fail the call, not weaken the key.
func TestFailingRandomnessIsAServerFault(t *testing.T) {
	cfg := kms.Config{Random: iotest.ErrReader(errors.New("no entropy"))}
	bubble(t, cfg, func(t *testing.T, _ *kms.Server, c *client) {
		_, err := c.CreateKey(c.ctx, &sdk.CreateKeyInput{})
		c.mustRefuse(err, "InternalFailure")
		if !strings.Contains(err.Error(), "no entropy") {
			t.Errorf("the error hides its cause: %v", err)
		}
	})
}
