package secretsmanager_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/devstack/secretsmanager"
	"dakghar/internal/devstack/wiretest"
)

// The suite is what rotation rests on (requirements S1, S2, S4): a version stays
// readable by its id whatever its labels do, and labels move as the service says.

func TestEmbedded(t *testing.T) {
	wiretest.Embedded(t, func(testing.TB) http.Handler { return secretsmanager.New(secretsmanager.Config{}) }, checks())
}

func TestMoto(t *testing.T) { wiretest.Moto(t, checks(), motoDiffers) }

// motoDiffers lists what moto 5.2.1 answers differently, and why we do not follow it.
var motoDiffers = map[string]string{
	"what does not exist is not found":                                         "ListSecretVersionIds of an absent secret is HTTP 500",
	"a value of 64 KiB is taken, one byte more is refused":                     "the limit is not checked",
	"a value that is text and bytes, or neither, is refused":                   "both are accepted",
	"a name that cannot be is refused":                                         "names are not checked",
	"what the local stack does not do is refused, not ignored":                 "moto has tags and all calls",
	"a version with a label of its own outlives two rotations":                 "a put takes every label from the version that was current; the API reference names AWSCURRENT alone",
	"a label is not taken from a version that is not named":                    "it is taken",
	"the current label is never removed altogether":                            "it is removed",
	"a change of labels that names no version is refused":                      "it is accepted",
	"a description shows the versions that have labels, and no others":         "versions without labels are shown",
	"a version without labels is hidden, listed on demand, and readable by id": "IncludeDeprecated is ignored, all are listed",
	"versions are listed in pages":                                             "MaxResults is ignored, or every page is the first",
	"a secret has at most twenty labels":                                       "labels are not counted",
	"a deleted secret can be described but not used":                           "a put and a creation are accepted",
	"a deleted secret's labels stay as they are":                               "they can be changed",
}

type check struct {
	name string
	slow bool
	run  func(t testing.TB, c *client)
}

func checks() []wiretest.Check {
	var all []wiretest.Check
	for _, part := range [][]check{valueChecks, labelChecks, lifeChecks} {
		for _, c := range part {
			all = append(all, wiretest.Check{Name: c.name, Slow: c.slow, Run: func(t testing.TB, e wiretest.Endpoint) { c.run(t, newClient(t, e)) }})
		}
	}
	return all
}

// Tokens are the ids of the versions they make.
const (
	v1 = "11111111-1111-4111-8111-111111111111"
	v2 = "22222222-2222-4222-8222-222222222222"
	v3 = "33333333-3333-4333-8333-333333333333"
	v4 = "44444444-4444-4444-8444-444444444444"
)

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

// create makes the secret "key" with one version.
func (c *client) create() *sdk.CreateSecretOutput {
	c.t.Helper()
	out, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{
		Name: aws.String("key"), ClientRequestToken: aws.String(v1), SecretString: aws.String("value of " + v1), Description: aws.String("for tests"),
	})
	c.must(err)
	return out
}

// put adds a version whose value tells its id.
func (c *client) put(id string, labels ...string) {
	c.t.Helper()
	_, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{
		SecretId: aws.String("key"), ClientRequestToken: &id, SecretString: aws.String("value of " + id), VersionStages: labels,
	})
	c.must(err)
}

func (c *client) get(id, label string) (*sdk.GetSecretValueOutput, error) {
	in := &sdk.GetSecretValueInput{SecretId: aws.String("key")}
	if id != "" {
		in.VersionId = &id
	}
	if label != "" {
		in.VersionStage = &label
	}
	return c.GetSecretValue(c.ctx, in)
}

func (c *client) relabel(label, from, to string) error {
	in := &sdk.UpdateSecretVersionStageInput{SecretId: aws.String("key"), VersionStage: &label}
	if from != "" {
		in.RemoveFromVersionId = &from
	}
	if to != "" {
		in.MoveToVersionId = &to
	}
	_, err := c.UpdateSecretVersionStage(c.ctx, in)
	return err
}

// mustHaveStages compares the labels of all versions that have any.
func (c *client) mustHaveStages(want map[string][]string) {
	c.t.Helper()
	out, err := c.DescribeSecret(c.ctx, &sdk.DescribeSecretInput{SecretId: aws.String("key")})
	c.must(err)
	// That versions without labels are not shown is a check of its own.
	maps.DeleteFunc(out.VersionIdsToStages, func(_ string, labels []string) bool { return len(labels) == 0 })
	if diff := cmp.Diff(want, out.VersionIdsToStages, sorted); diff != "" {
		c.t.Errorf("labels (-want +got):\n%s", diff)
	}
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

var sorted = cmpopts.SortSlices(strings.Compare)

// The identity is the caller's, and no answer but GetSecretValue's holds a value.
func TestIdentityIsInjectedAndErrorsHoldNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := secretsmanager.Config{Region: "eu-west-1", AccountID: "111122223333", NewID: func() string { return "ab-cd-ef-gh" }}
		c := newClient(t, wiretest.Serve(t, secretsmanager.New(cfg)))
		if arn := *c.create().ARN; arn != "arn:aws:secretsmanager:eu-west-1:111122223333:secret:key-abcdef" {
			t.Errorf("the ARN is %s", arn)
		}
		canary := "canary-value"
		var refusals []string
		for _, in := range []sdk.PutSecretValueInput{
			{SecretId: aws.String("key"), ClientRequestToken: aws.String(v1), SecretString: &canary},
			{SecretId: aws.String("absent"), SecretString: &canary},
			{SecretId: aws.String("key"), SecretString: &canary, SecretBinary: []byte(canary)},
			{SecretId: aws.String("key"), SecretString: &canary, RotationToken: aws.String(v1)},
		} {
			_, err := c.PutSecretValue(c.ctx, &in)
			if err == nil {
				t.Fatal("a put that must be refused was accepted")
			}
			refusals = append(refusals, err.Error())
		}
		if slices.ContainsFunc(refusals, func(text string) bool { return strings.Contains(text, canary) }) {
			t.Errorf("an error repeats the value: %q", refusals)
		}
	})
}

// An answer is written after the lock is released: it must share nothing that
// another call may change. The race detector is the judge.
func TestAnswersShareNothingThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, wiretest.Serve(t, secretsmanager.New(secretsmanager.Config{})))
		c.create()
		c.put(v2, "a", "b", "c")
		var group sync.WaitGroup
		group.Go(func() {
			for range 20 {
				if err := errors.Join(c.relabel("a", v2, ""), c.relabel("a", "", v2)); err != nil {
					t.Error(err)
				}
			}
		})
		for range 3 {
			group.Go(func() {
				for range 20 {
					_, described := c.DescribeSecret(c.ctx, &sdk.DescribeSecretInput{SecretId: aws.String("key")})
					_, listed := c.ListSecretVersionIds(c.ctx, &sdk.ListSecretVersionIdsInput{SecretId: aws.String("key")})
					got, err := c.get(v2, "b")
					if err := errors.Join(described, listed, err); err != nil {
						t.Error(err)
					} else if slices.Contains(got.VersionStages, "") {
						t.Errorf("the labels are %q", got.VersionStages)
					}
				}
			})
		}
		group.Wait()
	})
}
