package secretsmanager_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
