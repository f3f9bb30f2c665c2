package secretsmanager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/devstack/wiretest"
)

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
