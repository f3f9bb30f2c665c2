package templatetest

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The linker leaves out what cannot be reached from a function's main, methods of the SDK's clients among it. So the
// symbols of a binary are the calls that its code can make, whatever a test happens to drive; internal/sim holds the
// calls that are made to tables, indexes and rows.

// clientCall is a symbol such as github.com/aws/aws-sdk-go-v2/service/sqs.(*Client).SendMessage.
var clientCall = regexp.MustCompile(`aws-sdk-go-v2/service/(\w+)\.\(\*Client\)\.([A-Z]\w+)$`)

// prefixes are the names of services in policies.
var prefixes = map[string]string{
	"dynamodb": "dynamodb", "eventbridge": "events", "kms": "kms", "s3": "s3", "secretsmanager": "secretsmanager", "sqs": "sqs",
}

// theSDKsOwn are operations that the SDK keeps for itself, and makes only where the client is told so, as ours never are.
var theSDKsOwn = map[string]string{
	"dynamodb:DescribeEndpoints": "finds endpoints, where endpoint discovery is switched on",
	"s3:CreateSession":           "opens a session with a directory bucket",
}

// asks says which actions an operation takes where it is not the one of its name. Actions on a key through S3 are made
// by S3 in its caller's name.
var asks = map[string][]string{
	"sqs:SendMessageBatch":        {"sqs:SendMessage"},
	"s3:HeadObject":               {"s3:GetObject", "s3:ListBucket", "kms:Decrypt" + throughS3},
	"s3:GetObject":                {"s3:GetObject", "s3:ListBucket", "kms:Decrypt" + throughS3},
	"s3:PutObject":                {"s3:PutObject", "kms:GenerateDataKey" + throughS3, "kms:Decrypt" + throughS3},
	"dynamodb:TransactGetItems":   {"dynamodb:GetItem"},
	"dynamodb:TransactWriteItems": nil, // see partsOf
}

// partsOf are the actions that a transaction may take: which ones is not seen in a binary.
var partsOf = map[string][]string{
	"dynamodb:TransactWriteItems": {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"},
}

// neverAsked are operations in a binary that its function never makes.
var neverAsked = map[string]map[string]string{
	"DispatcherRole": {"s3:PutObject": "the one body that it puts, the news of a pause, is far below its bound for a row"},
}

// callsOf builds a function and reads which calls it can make, as "service:Operation".
func callsOf(t *testing.T, function string) []string {
	t.Helper()
	source := "dakghar/functions/" + strings.ToLower(strings.TrimSuffix(function, "Function"))
	binary := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", binary, source)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	symbols, err := exec.Command("go", "tool", "nm", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(symbols)) {
		m := clientCall.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		prefix, known := prefixes[m[1]]
		if !known {
			t.Fatalf("%s calls the service %s, whose name in policies this test does not know", function, m[1])
		}
		if call := prefix + ":" + m[2]; theSDKsOwn[call] == "" {
			calls = append(calls, call)
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// byOthers are permissions that a role has for AWS's own services: Lambda writes its output, reads its stream or queue
// and reports what it gave up, and its traces; DynamoDB uses the key of a table.
func byOthers(line string) bool {
	action, _, _ := strings.Cut(line, " on ")
	return slices.Contains([]string{
		"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTelemetryRecords", "xray:PutTraceSegments",
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
		"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams",
	}, action) || strings.HasSuffix(line, throughDynamo)
}

// disagree compares the calls of a function with what its role allows.
func disagree(role string, calls, lines []string) []string {
	granted, wanted := map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		if !byOthers(line) {
			granted[actionOf(line)] = true
		}
	}
	var wrong []string
	for _, call := range calls {
		needs, special := asks[call]
		if !special {
			needs = []string{call}
		}
		parts := partsOf[call]
		for _, action := range slices.Concat(needs, parts) {
			wanted[action] = true
		}
		if neverAsked[role][call] != "" {
			continue
		}
		for _, action := range needs {
			if !granted[action] {
				wrong = append(wrong, fmt.Sprintf("%s takes %s, which is not granted", call, action))
			}
		}
		if parts != nil && !slices.ContainsFunc(parts, func(action string) bool { return granted[action] }) {
			wrong = append(wrong, call+" takes one of its parts, and none is granted")
		}
	}
	for _, action := range slices.Sorted(maps.Keys(granted)) {
		if !wanted[action] {
			wrong = append(wrong, action+" is granted, and no call takes it")
		}
	}
	return wrong
}

// actionOf is a grant's action, and whether S3 takes it.
func actionOf(line string) string {
	action, _, _ := strings.Cut(line, " on ")
	if strings.HasSuffix(line, throughS3) {
		return action + throughS3
	}
	return action
}

// No role lacks an action that its function's code can ask for, and none has one that it cannot. Proves D6.
func TestRolesAllowWhatTheCodeCanCall(t *testing.T) {
	t.Parallel()
	tmpl := load(t)
	all := grants(t, tmpl)
	for _, function := range tmpl.ofType("AWS::Serverless::Function") {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			role, _, _ := strings.Cut(text(tmpl.Resources[function].Properties["Role"]), ".")
			calls := callsOf(t, function)
			if len(calls) == 0 {
				t.Fatal("no call is found in the binary: has the SDK been renamed?")
			}
			for _, wrong := range disagree(role, calls, all[role]) {
				t.Errorf("%s: %s", role, wrong)
			}
		})
	}
}

// What the test above would say of a permission too much and of one too few.
func TestAPlantedDisagreementIsFound(t *testing.T) {
	calls := callsOf(t, "IngressFunction")
	lines := grants(t, load(t))["IngressRole"]
	without := func(drop string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, drop) })
	}
	noWrites := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return slices.Contains(partsOf["dynamodb:TransactWriteItems"], actionOf(line))
	})
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"as it is", lines, nil},
		{"an action too much", append(slices.Clone(lines), "dynamodb:Scan on InboxTable.Arn"), []string{"dynamodb:Scan is granted, and no call takes it"}},
		{"a key opened", append(slices.Clone(lines), "kms:Decrypt on DataKey.Arn"+inContext), []string{"kms:Decrypt is granted, and no call takes it"}},
		{"an action too few", without("kms:GenerateDataKey on DataKey.Arn" + inContext), []string{"kms:GenerateDataKey takes kms:GenerateDataKey, which is not granted"}},
		{"through S3 too few", without("kms:GenerateDataKey on DataKey.Arn" + throughS3), []string{"s3:PutObject takes kms:GenerateDataKey" + throughS3 + ", which is not granted"}},
		{"no part of a transaction", noWrites, []string{
			"dynamodb:DeleteItem takes dynamodb:DeleteItem, which is not granted",
			"dynamodb:PutItem takes dynamodb:PutItem, which is not granted",
			"dynamodb:TransactWriteItems takes one of its parts, and none is granted",
			"dynamodb:UpdateItem takes dynamodb:UpdateItem, which is not granted",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, disagree("IngressRole", calls, tt.lines)); diff != "" {
				t.Errorf("disagreements (-want +got):\n%s", diff)
			}
		})
	}
}
