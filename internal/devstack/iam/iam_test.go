package iam_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/iam"
)

func parse(t *testing.T, statements string) iam.Policy {
	t.Helper()
	p, err := iam.Parse([]byte(`{"Version":"2012-10-17","Statement":[` + statements + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	table = "arn:aws:dynamodb:us-east-1:000000000000:table/Registry"
	key   = "arn:aws:kms:us-east-1:000000000000:key/1"
)

// request is an action on a resource; context is "key=value,value" and so on.
func request(action, resource string, context ...string) iam.Request {
	q := iam.Request{Action: action, Resource: resource, Context: map[string][]string{}}
	for _, c := range context {
		name, values, _ := strings.Cut(c, "=")
		q.Context[name] = strings.Split(values, ",")
	}
	return q
}

// Proves D6: what no statement allows is denied, by action, by resource, and by
// every condition of a statement.
func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		rows   = `{"Sid":"Rows","Effect":"Allow","Action":["dynamodb:GetItem","dynamodb:BatchGetItem"],"Resource":"` + table + `","Condition":{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["endpoint#*","lease#*"]}}}`
		seals  = `{"Sid":"Seals","Effect":"Allow","Action":"kms:Decrypt","Resource":"` + key + `","Condition":{"StringEquals":{"kms:EncryptionContext:purpose":"body"}}}`
		absent = `{"Sid":"Absent","Effect":"Allow","Action":"s3:PutObject","Resource":"arn:aws:s3:::b/bodies/*","Condition":{"Null":{"s3:x-amz-acl":true}}}`
		denied = `{"Effect":"Deny","Action":"s3:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}`
		some   = `{"Sid":"Some","Effect":"Allow","Action":"dynamodb:Scan","Resource":"*","Condition":{"ForAnyValue:StringEquals":{"tag":["a","b"]}}}`
	)
	role := iam.Role{Name: "R", Policy: parse(t, strings.Join([]string{rows, seals, absent, denied, some}, ","))}
	allowed := func(grants ...iam.Grant) iam.Decision { return iam.Decision{Allowed: true, Used: grants} }
	not := func(action string) iam.Decision {
		return iam.Decision{Why: "because no identity-based policy allows the " + action + " action"}
	}
	rowsGrant := func(pattern string) iam.Grant {
		return iam.Grant{Sid: "Rows", Action: "dynamodb:GetItem", Resource: table, If: "dynamodb:leadingkeys ForAllValues:StringLike " + pattern}
	}
	batch := func(pattern string) iam.Grant {
		g := rowsGrant(pattern)
		g.Action = "dynamodb:BatchGetItem"
		return g
	}
	for _, tt := range []struct {
		name string
		q    iam.Request
		want iam.Decision
	}{
		{"a row of one kind", request("dynamodb:GetItem", table, "dynamodb:leadingkeys=endpoint#demo"), allowed(rowsGrant("endpoint#*"))},
		{"rows of both kinds", request("dynamodb:BatchGetItem", table, "dynamodb:leadingkeys=endpoint#a,lease#b,endpoint#c"), allowed(batch("endpoint#*"), batch("lease#*"))},
		{"one row of another kind", request("dynamodb:BatchGetItem", table, "dynamodb:leadingkeys=endpoint#a,audit#b"), not("dynamodb:BatchGetItem")},
		{"another action", request("dynamodb:PutItem", table, "dynamodb:leadingkeys=endpoint#demo"), not("dynamodb:PutItem")},
		{"another table", request("dynamodb:GetItem", table+"2", "dynamodb:leadingkeys=endpoint#demo"), not("dynamodb:GetItem")},
		{"an index of the table", request("dynamodb:GetItem", table+"/index/i", "dynamodb:leadingkeys=endpoint#demo"), not("dynamodb:GetItem")},
		{"capitals of an action", request("DynamoDB:getitem", table, "dynamodb:leadingkeys=lease#a"), allowed(rowsGrant("lease#*"))},
		{"no key at all, which ForAllValues lets through", request("dynamodb:GetItem", table), allowed()},
		{"the context", request("kms:Decrypt", key, "kms:encryptioncontext:purpose=body"), allowed(iam.Grant{Sid: "Seals", Action: "kms:Decrypt", Resource: key, If: "kms:encryptioncontext:purpose StringEquals body"})},
		{"another context", request("kms:Decrypt", key, "kms:encryptioncontext:purpose=Body"), not("kms:Decrypt")},
		{"no context", request("kms:Decrypt", key), not("kms:Decrypt")},
		{"two values where one is wanted", request("kms:Decrypt", key, "kms:encryptioncontext:purpose=body,body"), not("kms:Decrypt")},
		{"a header that is absent", request("s3:PutObject", "arn:aws:s3:::b/bodies/a/b", "aws:securetransport=true"), allowed(iam.Grant{Sid: "Absent", Action: "s3:PutObject", Resource: "arn:aws:s3:::b/bodies/*", If: "s3:x-amz-acl Null true"})},
		{"a header that is there", request("s3:PutObject", "arn:aws:s3:::b/bodies/a", "s3:x-amz-acl=private"), not("s3:PutObject")},
		{"a deny outweighs", request("s3:PutObject", "arn:aws:s3:::b/bodies/a", "aws:securetransport=false"), iam.Decision{Why: "with an explicit deny in an identity-based policy"}},
		{"one value of several", request("dynamodb:Scan", "*", "tag=x,b"), allowed(iam.Grant{Sid: "Some", Action: "dynamodb:Scan", Resource: "*", If: "tag ForAnyValue:StringEquals b"})},
		{"no value of several", request("dynamodb:Scan", "*", "tag=x"), not("dynamodb:Scan")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, role.Decide(tt.q)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.q, diff)
			}
		})
	}
}

func TestGrantsAreEverythingThatAPolicyGives(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"Sid":"A","Effect":"Allow","Action":["s3:GetObject","s3:PutObject"],"Resource":["x","y"]},
		{"Sid":"B","Effect":"Allow","Action":"kms:Decrypt","Resource":"k","Condition":{"StringLike":{"c":["1","2"]},"Null":{"d":"false"}}},
		{"Sid":"C","Effect":"Deny","Action":"*","Resource":"*"}`)
	want := []string{
		"s3:GetObject on x", "s3:GetObject on y", "s3:PutObject on x", "s3:PutObject on y",
		"kms:Decrypt on k if d Null false and c StringLike 1", "kms:Decrypt on k if d Null false and c StringLike 2",
	}
	var got []string
	for _, g := range p.Grants() {
		got = append(got, g.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}

// A part of the language that is not known is refused, never passed over.
func TestWhatIsNotKnownIsRefused(t *testing.T) {
	t.Parallel()
	const allow = `"Effect":"Allow","Action":"s3:GetObject","Resource":"*"`
	for name, tt := range map[string]struct{ document, want string }{
		"operator":        {`{"Version":"2012-10-17","Statement":[{"Sid":"X",` + allow + `,"Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}}]}`, "policy: statement 1 (X): condition operator IpAddress is not known here"},
		"IfExists":        {`{"Version":"2012-10-17","Statement":[{` + allow + `,"Condition":{"StringEqualsIfExists":{"a":"b"}}}]}`, "condition operator StringEqualsIfExists is not known here"},
		"negation":        {`{"Version":"2012-10-17","Statement":[{` + allow + `,"Condition":{"ForAllValues:StringNotEquals":{"a":"b"}}}]}`, "condition operator ForAllValues:StringNotEquals is not known here"},
		"quantifier":      {`{"Version":"2012-10-17","Statement":[{` + allow + `,"Condition":{"ForMostValues:StringLike":{"a":"b"}}}]}`, "condition operator ForMostValues:StringLike is not known here"},
		"quantified Null": {`{"Version":"2012-10-17","Statement":[{` + allow + `,"Condition":{"ForAllValues:Null":{"a":"b"}}}]}`, "condition operator ForAllValues:Null is not known here"},
		"variable":        {`{"Version":"2012-10-17","Statement":[{` + allow + `,"Condition":{"StringLike":{"dynamodb:LeadingKeys":"${aws:userid}"}}}]}`, "policy variables are not known here"},
		"NotAction":       {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","NotAction":"s3:GetObject","Resource":"*"}]}`, `unknown field "NotAction"`},
		"Principal":       {`{"Version":"2012-10-17","Statement":[{` + allow + `,"Principal":"*"}]}`, `unknown field "Principal"`},
		"no resource":     {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject"}]}`, "it has no Resource"},
		"no action":       {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Resource":"*"}]}`, "it has no Action"},
		"effect":          {`{"Version":"2012-10-17","Statement":[{"Effect":"allow","Action":"s3:GetObject","Resource":"*"}]}`, `effect "allow" is neither Allow nor Deny`},
		"version":         {`{"Statement":[]}`, `version "" is not 2012-10-17`},
		"a number":        {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":7,"Resource":"*"}]}`, "want text, not float64"},
		"no document":     {`[]`, "policy: json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := iam.Parse([]byte(tt.document)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLike(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "any/thing:at all", true}, {"a", "a", true}, {"a", "A", false},
		{"a*", "a", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false}, {"a*c*e", "abcde", true}, {"a*c*e", "abcd", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"?", "", false}, {"*ab", "aab", true}, {"*a*b*", "xxaxxbxx", true}, {"**", "x", true},
		{"secret:s/endpoint/*", "secret:s/endpoint/demo-AbCdEf", true}, {"secret:s/endpoint/*", "secret:s/endpointx", false},
	} {
		if got := iam.Like(tt.pattern, tt.text); got != tt.want {
			t.Errorf("Like(%q, %q) = %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
}

func FuzzLike(f *testing.F) {
	f.Add("a*b?c", "aXbYc")
	f.Add("***", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		got := iam.Like(pattern, text)
		if !strings.ContainsAny(pattern, "*?") && got != (pattern == text) {
			t.Errorf("Like(%q, %q) = %v", pattern, text, got)
		}
		if got != iam.Like("*"+pattern, text) && got {
			t.Errorf("%q matches %q, and with * before it does not", pattern, text)
		}
	})
}
