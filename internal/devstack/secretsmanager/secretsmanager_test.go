package secretsmanager_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
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

var valueChecks = []check{
	{name: "a new secret has one version, current and named by its token", run: func(t testing.TB, c *client) {
		made := c.create()
		if !strings.HasPrefix(*made.ARN, "arn:aws:secretsmanager:us-east-1:") || !strings.Contains(*made.ARN, ":secret:key-") {
			t.Errorf("the ARN is %s", *made.ARN)
		}
		for _, id := range []*string{aws.String("key"), made.ARN, aws.String((*made.ARN)[:len(*made.ARN)-len("-abcdef")])} {
			got, err := c.GetSecretValue(c.ctx, &sdk.GetSecretValueInput{SecretId: id})
			c.must(err)
			want := &sdk.GetSecretValueOutput{
				ARN: made.ARN, Name: aws.String("key"), VersionId: aws.String(v1), VersionStages: []string{"AWSCURRENT"},
				SecretString: aws.String("value of " + v1),
			}
			if diff := cmp.Diff(want, got, ignoreOutput); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if age := time.Since(*got.CreatedDate); age < -time.Minute || age > time.Minute {
				t.Errorf("the version was created %v ago", age)
			}
		}
	}},
	{name: "bytes come back as bytes", run: func(t testing.TB, c *client) {
		want := []byte{0, 1, 254, 255}
		_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("key"), SecretBinary: want})
		c.must(err)
		got, err := c.get("", "")
		c.must(err)
		if diff := cmp.Diff(want, got.SecretBinary); diff != "" || got.SecretString != nil {
			t.Errorf("bytes (-want +got):\n%s\ntext: %v", diff, got.SecretString)
		}
	}},
	{name: "a secret without a value has none to give until one is put", run: func(t testing.TB, c *client) {
		_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("key")})
		c.must(err)
		_, err = c.get("", "")
		c.mustRefuse(err, "ResourceNotFoundException")
		c.put(v1)
		got, err := c.get("", "AWSCURRENT")
		c.must(err)
		if *got.VersionId != v1 {
			t.Errorf("the current version is %s", *got.VersionId)
		}
	}},
	{name: "the first version is current, whatever labels it is put with", run: func(t testing.TB, c *client) {
		_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("key")})
		c.must(err)
		c.put(v1, "blue")
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT", "blue"}})
	}},
	{name: "a version is found by id, by label, and by both only if they agree", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		tests := []struct{ id, label, want string }{
			{"", "", v2}, {"", "AWSCURRENT", v2}, {"", "AWSPREVIOUS", v1},
			{v1, "", v1}, {v2, "", v2}, {v1, "AWSPREVIOUS", v1}, {v2, "AWSCURRENT", v2},
		}
		for _, tt := range tests {
			got, err := c.get(tt.id, tt.label)
			c.must(err)
			if *got.VersionId != tt.want || *got.SecretString != "value of "+tt.want {
				t.Errorf("id %q and label %q gave version %s", tt.id, tt.label, *got.VersionId)
			}
		}
		_, err := c.get(v1, "AWSCURRENT")
		c.mustRefuse(err, "InvalidRequestException")
		_, err = c.get(v3, "")
		c.mustRefuse(err, "ResourceNotFoundException")
		_, err = c.get("", "AWSPENDING")
		c.mustRefuse(err, "ResourceNotFoundException")
	}},
	{name: "what does not exist is not found", run: func(t testing.TB, c *client) {
		_, err := c.get("", "")
		c.mustRefuse(err, "ResourceNotFoundException")
		_, err = c.DescribeSecret(c.ctx, &sdk.DescribeSecretInput{SecretId: aws.String("key")})
		c.mustRefuse(err, "ResourceNotFoundException")
		_, err = c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), SecretString: aws.String("x")})
		c.mustRefuse(err, "ResourceNotFoundException")
		_, err = c.ListSecretVersionIds(c.ctx, &sdk.ListSecretVersionIdsInput{SecretId: aws.String("key")})
		c.mustRefuse(err, "ResourceNotFoundException")
		c.mustRefuse(c.relabel("blue", "", v1), "ResourceNotFoundException")
	}},
	{name: "a secret that exists is not made again", run: func(t testing.TB, c *client) {
		c.create()
		_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("key"), SecretString: aws.String("other")})
		c.mustRefuse(err, "ResourceExistsException")
	}},
	{name: "a creation repeated with its token and value is the same creation", run: func(t testing.TB, c *client) {
		made := c.create()
		again := c.create()
		if *made.ARN != *again.ARN || *again.VersionId != v1 {
			t.Errorf("the second creation made %s, version %s", *again.ARN, *again.VersionId)
		}
	}},
	{name: "a put repeated with its token and value changes nothing", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.put(v3)
		c.put(v2) // a late retry must not bring the old version back
		c.mustHaveStages(map[string][]string{v3: {"AWSCURRENT"}, v2: {"AWSPREVIOUS"}})
	}},
	{name: "a token with another value is refused", run: func(t testing.TB, c *client) {
		c.create()
		for _, in := range []sdk.PutSecretValueInput{{SecretString: aws.String("other")}, {SecretBinary: []byte("value of " + v1)}} {
			in.SecretId, in.ClientRequestToken = aws.String("key"), aws.String(v1)
			_, err := c.PutSecretValue(c.ctx, &in)
			c.mustRefuse(err, "ResourceExistsException")
		}
		got, err := c.get("", "")
		c.must(err)
		if *got.SecretString != "value of "+v1 {
			t.Error("a refused put changed the value")
		}
	}},
	{name: "the SDK's own token names a version when the caller gives none", run: func(t testing.TB, c *client) {
		c.create()
		out, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), SecretString: aws.String("x")})
		c.must(err)
		got, err := c.get(*out.VersionId, "AWSCURRENT")
		c.must(err)
		if *got.SecretString != "x" {
			t.Errorf("version %s has another value", *out.VersionId)
		}
	}},
	{name: "a value of 64 KiB is taken, one byte more is refused", run: func(t testing.TB, c *client) {
		c.create()
		_, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), SecretString: aws.String(strings.Repeat("x", 65536))})
		c.must(err)
		_, err = c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), SecretString: aws.String(strings.Repeat("x", 65537))})
		if err == nil {
			t.Error("65537 bytes were accepted")
		}
	}},
	{name: "a value that is text and bytes, or neither, is refused", run: func(t testing.TB, c *client) {
		_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("both"), SecretString: aws.String("x"), SecretBinary: []byte("x")})
		c.mustRefuse(err, "InvalidParameterException")
		c.create()
		_, err = c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), SecretString: aws.String("x"), SecretBinary: []byte("x")})
		c.mustRefuse(err, "InvalidParameterException")
	}},
	{name: "a put without a value is refused", run: func(t testing.TB, c *client) {
		c.create()
		_, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key")})
		if err == nil {
			t.Error("accepted")
		}
	}},
	{name: "a token that is too short or too long is refused", run: func(t testing.TB, c *client) {
		c.create()
		for _, token := range []string{"short", strings.Repeat("t", 65)} {
			_, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), ClientRequestToken: &token, SecretString: aws.String("x")})
			c.mustRefuse(err, "InvalidParameterException")
		}
	}},
	{name: "a name that cannot be is refused", run: func(t testing.TB, c *client) {
		for _, name := range []string{"no spaces", "no:colons", strings.Repeat("n", 513)} {
			_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: &name, SecretString: aws.String("x")})
			if err == nil {
				t.Errorf("the name %.20q was accepted", name)
			}
		}
	}},
	{name: "what the local stack does not do is refused, not ignored", run: func(t testing.TB, c *client) {
		c.create()
		_, err := c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("tagged"), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
		c.mustRefuse(err, "UnsupportedParameter")
		_, err = c.RotateSecret(c.ctx, &sdk.RotateSecretInput{SecretId: aws.String("key")})
		c.mustRefuse(err, "UnknownOperationException")
		_, err = c.ListSecrets(c.ctx, &sdk.ListSecretsInput{})
		c.mustRefuse(err, "UnknownOperationException")
	}},
}

var labelChecks = []check{
	{name: "a new value becomes current and the one before it previous", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.mustHaveStages(map[string][]string{v2: {"AWSCURRENT"}, v1: {"AWSPREVIOUS"}})
		c.put(v3)
		c.mustHaveStages(map[string][]string{v3: {"AWSCURRENT"}, v2: {"AWSPREVIOUS"}})
	}},
	{name: "a pending version leaves the current one alone until it is promoted", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2, "AWSPENDING")
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT"}, v2: {"AWSPENDING"}})
		c.must(c.relabel("AWSCURRENT", v1, v2))
		c.mustHaveStages(map[string][]string{v2: {"AWSCURRENT", "AWSPENDING"}, v1: {"AWSPREVIOUS"}})
		c.must(c.relabel("AWSPENDING", v2, ""))
		c.mustHaveStages(map[string][]string{v2: {"AWSCURRENT"}, v1: {"AWSPREVIOUS"}})
	}},
	{name: "a move back of the current label swaps it with the previous one", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.must(c.relabel("AWSCURRENT", v2, v1))
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT"}, v2: {"AWSPREVIOUS"}})
	}},
	{name: "a version put with labels of its own is not current", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2, "key-2")
		c.put(v3, "key-3", "AWSCURRENT")
		c.mustHaveStages(map[string][]string{v3: {"AWSCURRENT", "key-3"}, v2: {"key-2"}, v1: {"AWSPREVIOUS"}})
	}},
	{name: "a label put on a new version leaves the old one", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2, "blue")
		c.put(v3, "blue")
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT"}, v3: {"blue"}})
	}},
	{name: "a label of one's own is attached, moved and removed", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.must(c.relabel("blue", "", v1))
		c.mustHaveStages(map[string][]string{v2: {"AWSCURRENT"}, v1: {"AWSPREVIOUS", "blue"}})
		c.must(c.relabel("blue", v1, v2))
		c.mustHaveStages(map[string][]string{v2: {"AWSCURRENT", "blue"}, v1: {"AWSPREVIOUS"}})
		c.must(c.relabel("blue", v2, ""))
		c.mustHaveStages(map[string][]string{v2: {"AWSCURRENT"}, v1: {"AWSPREVIOUS"}})
	}},
	{name: "a version with a label of its own outlives two rotations", run: func(t testing.TB, c *client) {
		c.create()
		c.must(c.relabel("keep-1", "", v1))
		c.put(v2)
		c.put(v3)
		c.mustHaveStages(map[string][]string{v3: {"AWSCURRENT"}, v2: {"AWSPREVIOUS"}, v1: {"keep-1"}})
	}},
	{name: "a label is not taken from a version that is not named", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2, "blue")
		c.mustRefuse(c.relabel("blue", "", v1), "InvalidParameterException")
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT"}, v2: {"blue"}})
	}},
	{name: "a label is not taken from a version that has it not", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2, "blue")
		c.put(v3, "green")
		c.mustRefuse(c.relabel("blue", v3, v1), "InvalidParameterException")
		c.mustRefuse(c.relabel("blue", v3, ""), "InvalidParameterException")
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT"}, v2: {"blue"}, v3: {"green"}})
	}},
	{name: "the current label is never removed altogether", run: func(t testing.TB, c *client) {
		c.create()
		c.mustRefuse(c.relabel("AWSCURRENT", v1, ""), "InvalidParameterException")
		c.mustHaveStages(map[string][]string{v1: {"AWSCURRENT"}})
	}},
	{name: "a label is not given to a version that does not exist", run: func(t testing.TB, c *client) {
		c.create()
		c.mustRefuse(c.relabel("blue", "", v4), "InvalidParameterException")
		c.mustRefuse(c.relabel("AWSCURRENT", v4, v1), "InvalidParameterException")
	}},
	{name: "a description shows the versions that have labels, and no others", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.put(v3)
		out, err := c.DescribeSecret(c.ctx, &sdk.DescribeSecretInput{SecretId: aws.String("key")})
		c.must(err)
		if diff := cmp.Diff(map[string][]string{v2: {"AWSPREVIOUS"}, v3: {"AWSCURRENT"}}, out.VersionIdsToStages); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
	}},
	{name: "a change of labels that names no version is refused", run: func(t testing.TB, c *client) {
		c.create()
		c.mustRefuse(c.relabel("blue", "", ""), "InvalidParameterException")
	}},
	{name: "a version without labels is hidden, listed on demand, and readable by id", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.put(v3)
		if diff := cmp.Diff(map[string][]string{v2: {"AWSPREVIOUS"}, v3: {"AWSCURRENT"}}, c.list(false), sorted); diff != "" {
			t.Errorf("labelled versions (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string][]string{v1: nil, v2: {"AWSPREVIOUS"}, v3: {"AWSCURRENT"}}, c.list(true), sorted, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("all versions (-want +got):\n%s", diff)
		}
		got, err := c.get(v1, "")
		c.must(err)
		if *got.SecretString != "value of "+v1 || len(got.VersionStages) != 0 {
			t.Errorf("the deprecated version has labels %v", got.VersionStages)
		}
	}},
	{name: "versions are listed in pages", run: func(t testing.TB, c *client) {
		c.create()
		c.put(v2)
		c.put(v3, "blue")
		var got []string
		in := &sdk.ListSecretVersionIdsInput{SecretId: aws.String("key"), MaxResults: aws.Int32(2)}
		for pages := 1; ; pages++ {
			out, err := c.ListSecretVersionIds(c.ctx, in)
			c.must(err)
			for _, v := range out.Versions {
				got = append(got, *v.VersionId)
			}
			if in.NextToken = out.NextToken; in.NextToken == nil || pages > 2 {
				if pages != 2 {
					t.Errorf("3 versions came in %d pages of 2", pages)
				}
				break
			}
		}
		if diff := cmp.Diff([]string{v1, v2, v3}, got, sorted); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
		in.NextToken = aws.String("nonsense")
		_, err := c.ListSecretVersionIds(c.ctx, in)
		c.mustRefuse(err, "InvalidNextTokenException")
	}},
	{name: "a secret has at most twenty labels", run: func(t testing.TB, c *client) {
		c.create()
		var labels []string
		for i := range 19 { // with AWSCURRENT on the first version that makes twenty
			labels = append(labels, "label-"+string(rune('a'+i)))
		}
		c.put(v2, labels...)
		c.mustRefuse(c.relabel("one-more", "", v1), "LimitExceededException")
		c.must(c.relabel("label-a", v2, v1)) // a move adds none
		_, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), ClientRequestToken: aws.String(v3), SecretString: aws.String("x")})
		c.mustRefuse(err, "LimitExceededException") // AWSPREVIOUS would be the twenty-first
		got, err := c.get("", "")
		c.must(err)
		if *got.VersionId != v1 {
			t.Errorf("a refused put made version %s current", *got.VersionId)
		}
		_, err = c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), ClientRequestToken: aws.String(v3), SecretString: aws.String("x"), VersionStages: append(labels, "t", "u")})
		c.mustRefuse(err, "InvalidParameterException")
	}},
}

// list maps the listed versions to their labels.
func (c *client) list(deprecated bool) map[string][]string {
	c.t.Helper()
	out, err := c.ListSecretVersionIds(c.ctx, &sdk.ListSecretVersionIdsInput{SecretId: aws.String("key"), IncludeDeprecated: &deprecated})
	c.must(err)
	all := map[string][]string{}
	for _, v := range out.Versions {
		all[*v.VersionId] = v.VersionStages
	}
	return all
}

var lifeChecks = []check{
	{name: "a deleted secret can be described but not used", run: func(t testing.TB, c *client) {
		c.create()
		out, err := c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key")})
		c.must(err)
		if left := time.Until(*out.DeletionDate); left < 29*24*time.Hour || left > 31*24*time.Hour {
			t.Errorf("the recovery window is %v, want 30 days", left)
		}
		described, err := c.DescribeSecret(c.ctx, &sdk.DescribeSecretInput{SecretId: aws.String("key")})
		c.must(err)
		if described.DeletedDate == nil {
			t.Error("a deleted secret shows no date")
		}
		_, err = c.get("", "")
		c.mustRefuse(err, "InvalidRequestException")
		_, err = c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), SecretString: aws.String("x")})
		c.mustRefuse(err, "InvalidRequestException")
		_, err = c.CreateSecret(c.ctx, &sdk.CreateSecretInput{Name: aws.String("key"), SecretString: aws.String("x")})
		c.mustRefuse(err, "InvalidRequestException")
		_, err = c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key")})
		c.mustRefuse(err, "InvalidRequestException")
	}},
	{name: "a deleted secret's labels stay as they are", run: func(t testing.TB, c *client) {
		c.create()
		_, err := c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key")})
		c.must(err)
		c.mustRefuse(c.relabel("blue", "", v1), "InvalidRequestException")
	}},
	{name: "after the recovery window the secret is gone and its name is free", slow: true, run: func(t testing.TB, c *client) {
		c.create()
		_, err := c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key"), RecoveryWindowInDays: aws.Int64(7)})
		c.must(err)
		wiretest.Wait(7*24*time.Hour - time.Second)
		_, err = c.get("", "")
		c.mustRefuse(err, "InvalidRequestException")
		wiretest.Wait(time.Second)
		_, err = c.get("", "")
		c.mustRefuse(err, "ResourceNotFoundException")
		c.create()
	}},
	{name: "a forced deletion leaves nothing, and deletes nothing twice", run: func(t testing.TB, c *client) {
		c.create()
		for range 2 {
			_, err := c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key"), ForceDeleteWithoutRecovery: aws.Bool(true)})
			c.must(err)
		}
		_, err := c.get("", "")
		c.mustRefuse(err, "ResourceNotFoundException")
		c.create()
	}},
	{name: "a recovery window is seven to thirty days, or none", run: func(t testing.TB, c *client) {
		c.create()
		for _, days := range []int64{6, 31} {
			_, err := c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key"), RecoveryWindowInDays: &days})
			c.mustRefuse(err, "InvalidParameterException")
		}
		_, err := c.DeleteSecret(c.ctx, &sdk.DeleteSecretInput{SecretId: aws.String("key"), RecoveryWindowInDays: aws.Int64(7), ForceDeleteWithoutRecovery: aws.Bool(true)})
		c.mustRefuse(err, "InvalidParameterException")
	}},
	{name: "a description tells when the secret was made, changed and last read", slow: true, run: func(t testing.TB, c *client) {
		start := time.Now().UTC()
		made := c.create()
		wiretest.Wait(time.Hour)
		c.put(v2)
		wiretest.Wait(25 * time.Hour)
		_, err := c.get("", "")
		c.must(err)
		got, err := c.DescribeSecret(c.ctx, &sdk.DescribeSecretInput{SecretId: aws.String("key")})
		c.must(err)
		want := &sdk.DescribeSecretOutput{
			ARN: made.ARN, Name: aws.String("key"), Description: aws.String("for tests"),
			CreatedDate: aws.Time(start), LastChangedDate: aws.Time(start.Add(time.Hour)), LastAccessedDate: aws.Time(start.Add(24 * time.Hour)),
			VersionIdsToStages: map[string][]string{v1: {"AWSPREVIOUS"}, v2: {"AWSCURRENT"}},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(sdk.DescribeSecretOutput{}), cmpopts.IgnoreFields(sdk.DescribeSecretOutput{}, "ResultMetadata")); diff != "" {
			t.Errorf("description (-want +got):\n%s", diff)
		}
	}},
	{name: "beyond a hundred versions the oldest deprecated one goes, if it is a day old", slow: true, run: func(t testing.TB, c *client) {
		c.create()
		id := func(i int) string {
			return "version-" + strings.Repeat("0", 24) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		}
		for i := range 99 {
			c.put(id(i))
		}
		_, err := c.PutSecretValue(c.ctx, &sdk.PutSecretValueInput{SecretId: aws.String("key"), ClientRequestToken: aws.String(v2), SecretString: aws.String("x")})
		c.mustRefuse(err, "LimitExceededException")
		c.must(c.relabel("keep", "", v1))
		wiretest.Wait(24 * time.Hour)
		c.put(v2)
		all := c.list(true)
		if _, kept := all[v1]; len(all) != 100 || !kept {
			t.Errorf("%d versions are left, the labelled one kept: %v", len(all), kept)
		}
		_, err = c.get(id(0), "")
		c.mustRefuse(err, "ResourceNotFoundException")
	}},
}

var ignoreOutput = cmp.Options{
	cmpopts.IgnoreUnexported(sdk.GetSecretValueOutput{}),
	cmpopts.IgnoreFields(sdk.GetSecretValueOutput{}, "CreatedDate", "ResultMetadata"),
}

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
