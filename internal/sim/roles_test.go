package sim_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/sim"
)

// Every world of this package holds its programs to the roles of the template, so
// that a missing permission fails the test that meets it. Here it is proven that
// nothing else is granted: the scenarios and the tours below together use every
// grant, but for those that [byOthers] gives a reason for.
//
// Proves D6.
func TestEveryGrantIsUsed(t *testing.T) { //nolint:tparallel // its worlds must have ended before their use is read
	t.Parallel()
	use := &sim.Use{}
	useRoles(t, use)
	unused := use.Unused()
	for role, lines := range byOthers() {
		for line, reason := range lines {
			i := slices.Index(unused[role], line)
			if i < 0 {
				t.Errorf("%s: %s is used by our code, or not granted; its reason is void: %s", role, line, reason)
				continue
			}
			unused[role] = slices.Delete(unused[role], i, i+1)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(unused)) {
		for _, line := range unused[role] {
			t.Errorf("%s: %s is granted and never used", role, line)
		}
	}
}

// useRoles runs every scenario unharmed, and every tour. Their worlds have ended when it returns.
func useRoles(t *testing.T, use *sim.Use) {
	t.Helper()
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios() {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				s.Options.Use = use
				s.Points(t)
			})
		}
	})
	t.Run("tours", func(t *testing.T) {
		for name, tour := range tours() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tour(t, use)
			})
		}
	})
}

// byOthers are the grants that no call of our code uses, each with its reason.
func byOthers() map[string]map[string]string {
	const (
		logs    = "Lambda's runtime writes a function's output"
		stream  = "Lambda reads the stream with the function's role"
		queue   = "Lambda polls the queue with the function's role"
		given   = "Lambda reports with the function's role what it gave up"
		nowhere = "what stands where no sink is configured; the guard's own tests read such calls"
		traces  = "Lambda reports invocations with the function's role, only where Tracing is Active"
		tables  = "DynamoDB uses the key with its caller's role, only where TableKey is data-key"
	)
	out := map[string]map[string]string{
		"RelayRole": {
			"FindTheStream: dynamodb:ListStreams on OutboxTable.Arn/stream/*":    stream,
			"ReadTheStream: dynamodb:DescribeStream on OutboxTable.StreamArn":    stream,
			"ReadTheStream: dynamodb:GetRecords on OutboxTable.StreamArn":        stream,
			"ReadTheStream: dynamodb:GetShardIterator on OutboxTable.StreamArn":  stream,
			"WakeWorkersAndReportFailures: sqs:SendMessage on RelayFailures.Arn": given,
		},
		"ProcessorRole": {
			"ConsumeWakeUps: sqs:DeleteMessage on EventQueue.Arn":      queue,
			"ConsumeWakeUps: sqs:GetQueueAttributes on EventQueue.Arn": queue,
			"ConsumeWakeUps: sqs:ReceiveMessage on EventQueue.Arn":     queue,
		},
		"DispatcherRole": {
			"ConsumeWakeUps: sqs:DeleteMessage on DeliveryQueue.Arn":                                                    queue,
			"ConsumeWakeUps: sqs:GetQueueAttributes on DeliveryQueue.Arn":                                               queue,
			"ConsumeWakeUps: sqs:ReceiveMessage on DeliveryQueue.Arn":                                                   queue,
			"DeliverToQueues: sqs:SendMessage on DeliveryQueue.Arn":                                                     nowhere,
			"DeliverToBuses: events:PutEvents on arn:aws:events:${AWS::Region}:${AWS::AccountId}:event-bus/none-of-sim": nowhere,
		},
		"IngressRole": {}, "ReconcilerRole": {}, "CanaryRole": {},
	}
	for role, lines := range out {
		group := strings.TrimSuffix(role, "Role") + "Logs.Arn"
		lines["WriteOwnLogs: logs:CreateLogStream on "+group] = logs
		lines["WriteOwnLogs: logs:PutLogEvents on "+group] = logs
		lines["ReportTraces: xray:PutTelemetryRecords on *"] = traces
		lines["ReportTraces: xray:PutTraceSegments on *"] = traces
		for _, action := range []string{"Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey", "ReEncryptFrom", "ReEncryptTo"} {
			lines["TablesOnTheDataKey: kms:"+action+" on DataKey.Arn if kms:viaservice StringEquals dynamodb.${AWS::Region}.amazonaws.com"] = tables
		}
	}
	return out
}

// planted writes a copy of the template in which one text is another.
func planted(t *testing.T, was, is string) string {
	t.Helper()
	text, err := os.ReadFile(sim.TemplatePath())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), was) != 1 {
		t.Fatalf("the template has %d times %q, want once", strings.Count(string(text), was), was)
	}
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), was, is, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The roles' test would see a permission too much: an action, a resource, a kind
// of registry row.
func TestAPlantedSurplusIsFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, was, is, want string }{
		{
			"action", "Action: [dynamodb:PutItem, dynamodb:GetItem]\n                Resource: !GetAtt InboxTable.Arn",
			"Action: [dynamodb:PutItem, dynamodb:GetItem, dynamodb:Scan]\n                Resource: !GetAtt InboxTable.Arn",
			"AcceptEvents: dynamodb:Scan on InboxTable.Arn",
		},
		{
			"resource", "Action: dynamodb:PutItem\n                Resource: !GetAtt OutboxTable.Arn",
			"Action: dynamodb:PutItem\n                Resource: [!GetAtt OutboxTable.Arn, !GetAtt DeliveryTable.Arn]",
			"PromiseWork: dynamodb:PutItem on DeliveryTable.Arn",
		},
		{
			"row", `Action: dynamodb:UpdateItem
                Resource: !GetAtt RegistryTable.Arn
                Condition:
                  ForAllValues:StringLike: {"dynamodb:LeadingKeys": "tokens#*"}`, `Action: dynamodb:UpdateItem
                Resource: !GetAtt RegistryTable.Arn
                Condition:
                  ForAllValues:StringLike: {"dynamodb:LeadingKeys": ["tokens#*", "audit#*"]}`,
			"KeepEndpointsLimits: dynamodb:UpdateItem on RegistryTable.Arn if dynamodb:leadingkeys ForAllValues:StringLike audit#*",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before, after := &sim.Use{}, &sim.Use{}
			path := planted(t, tt.was, tt.is)
			for name, o := range map[string]sim.Options{"before": {Use: before}, "after": {Use: after, TemplatePath: path}} {
				t.Run(name, func(t *testing.T) {
					w := sim.New(t, o)
					send(w, stripe(w), "evt_1")
				})
			}
			var more []string
			for _, line := range after.Unused()["IngressRole"] {
				if !slices.Contains(before.Unused()["IngressRole"], line) {
					more = append(more, line)
				}
			}
			if diff := cmp.Diff([]string{tt.want}, more); diff != "" {
				t.Errorf("grants more (-want +got):\n%s", diff)
			}
		})
	}
}

// A permission too few is denied to the program, and said: an action, a key's
// context, a kind of registry row.
func TestAPlantedGapIsFound(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/sim-"
	for _, tt := range []struct{ name, was, is, want string }{
		{
			"action of a transaction's part", "Action: [dynamodb:PutItem, dynamodb:GetItem]\n                Resource: !GetAtt InboxTable.Arn",
			"Action: [dynamodb:GetItem]\n                Resource: !GetAtt InboxTable.Arn",
			"[IngressFunction] DENIED IngressRole: dynamodb:PutItem on " + arn + "InboxTable, because no identity-based policy allows the dynamodb:PutItem action",
		},
		{
			"row", "Action: [dynamodb:GetItem, dynamodb:PutItem]\n                Resource: !GetAtt RegistryTable.Arn\n                Condition:\n                  ForAllValues:StringLike: {\"dynamodb:LeadingKeys\": \"endpoint#*\"}",
			"Action: [dynamodb:GetItem, dynamodb:PutItem]\n                Resource: !GetAtt RegistryTable.Arn\n                Condition:\n                  ForAllValues:StringLike: {\"dynamodb:LeadingKeys\": \"endpoints#*\"}",
			"[IngressFunction] DENIED IngressRole: dynamodb:GetItem on " + arn + "RegistryTable, key endpoint#…, because no identity-based policy allows the dynamodb:GetItem action",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var denied []string
			w := sim.New(t, sim.Options{TemplatePath: planted(t, tt.was, tt.is), Denied: func(line string) {
				mu.Lock()
				defer mu.Unlock()
				denied = append(denied, line)
			}})
			if status := w.Post(w.Event(stripe(w), payment("evt_1"))); status != 503 {
				t.Errorf("the provider saw %d, want 503", status)
			}
			if diff := cmp.Diff([]string{tt.want}, slices.Compact(denied)); diff != "" {
				t.Errorf("denials (-want +got):\n%s", diff)
			}
		})
	}
}
