package secretsmanager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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

var ignoreOutput = cmp.Options{
	cmpopts.IgnoreUnexported(sdk.GetSecretValueOutput{}),
	cmpopts.IgnoreFields(sdk.GetSecretValueOutput{}, "CreatedDate", "ResultMetadata"),
}
