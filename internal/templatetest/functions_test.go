package templatetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environment says which variables each function reads and what they name.
var environment = map[string]map[string]string{
	"IngressFunction": {
		"GOGC": "400", "GOMEMLIMIT": "384MiB",
		"INBOX_TABLE": "InboxTable", "OUTBOX_TABLE": "OutboxTable", "BODY_TABLE": "BodyTable",
		"REGISTRY_TABLE": "RegistryTable", "BODY_BUCKET": "BodyBucket", "DATA_KEY_ID": "DataKey.Arn",
		"BODY_INLINE_BYTES": "BodyInlineBytes", "BODY_DAYS": "BodyDays",
		"INBOX_DAYS": "InboxDays", "COARSE_RATE": "CoarseRate", "COARSE_BURST": "CoarseBurst",
	},
	"RelayFunction": {
		"GOGC": "400", "GOMEMLIMIT": "192MiB",
		"OUTBOX_TABLE": "OutboxTable", "EVENT_QUEUE_URL": "EventQueue", "DELIVERY_QUEUE_URL": "DeliveryQueue",
	},
	"ProcessorFunction": {
		"GOGC": "400", "GOMEMLIMIT": "384MiB",
		"INBOX_TABLE": "InboxTable", "OUTBOX_TABLE": "OutboxTable", "BODY_TABLE": "BodyTable",
		"BUSINESS_TABLE": "BusinessTable", "REGISTRY_TABLE": "RegistryTable", "BODY_BUCKET": "BodyBucket", "DATA_KEY_ID": "DataKey.Arn",
		"BODY_INLINE_BYTES": "BodyInlineBytes", "BODY_DAYS": "BodyDays", "INBOX_DAYS": "InboxDays",
		"RETRY_PROFILE": "RetryProfile", "ATTEMPTS_MAX": "AttemptsMax", "GAP_MINUTES": "GapMinutes", "LEASE_SECONDS": "LeaseSeconds",
	},
	"DispatcherFunction": {
		"GOGC": "400", "GOMEMLIMIT": "384MiB",
		"OUTBOX_TABLE": "OutboxTable", "BODY_TABLE": "BodyTable", "DELIVERY_TABLE": "DeliveryTable", "REGISTRY_TABLE": "RegistryTable",
		"DELIVERY_QUEUE_URL": "DeliveryQueue", "BODY_BUCKET": "BodyBucket", "DATA_KEY_ID": "DataKey.Arn",
		"BODY_DAYS": "BodyDays", "DELIVERY_ATTEMPT_SECONDS": "DeliveryAttemptSeconds", "DELIVERY_LEASE_SECONDS": "DeliveryLeaseSeconds",
		"SINK_QUEUE_ARNS": "SinkQueueArns", "SINK_BUS_ARNS": "SinkBusArns",
		"OWN_HOSTS": "${FrontDoor}.execute-api.${AWS::Region}.${AWS::URLSuffix},${DomainName},${AlsoOwnHosts}",
	},
	"ReconcilerFunction": {
		"INBOX_TABLE": "InboxTable", "OUTBOX_TABLE": "OutboxTable", "BODY_TABLE": "BodyTable", "BUSINESS_TABLE": "BusinessTable",
		"REGISTRY_TABLE": "RegistryTable", "DELIVERY_TABLE": "DeliveryTable",
		"EVENT_QUEUE_URL": "EventQueue", "DELIVERY_QUEUE_URL": "DeliveryQueue", "BODY_BUCKET": "BodyBucket", "DATA_KEY_ID": "DataKey.Arn",
		"BODY_INLINE_BYTES": "BodyInlineBytes", "BODY_DAYS": "BodyDays", "INBOX_DAYS": "InboxDays",
		"RETRY_PROFILE": "RetryProfile", "ATTEMPTS_MAX": "AttemptsMax", "LEASE_SECONDS": "LeaseSeconds",
	},
	"CanaryFunction": {
		"INBOX_TABLE": "InboxTable", "REGISTRY_TABLE": "RegistryTable", "CANARY_SECONDS": "CanarySeconds",
		"FRONT_DOOR_URL": `{"Fn::If":["HasCanaryUrl",{"Ref":"CanaryUrl"},{"Fn::If":["HasDomain",{"Fn::Sub":"https://${DomainName}"},{"Fn::Sub":"https://${FrontDoor}.execute-api.${AWS::Region}.${AWS::URLSuffix}"}]}]}`,
	},
}

type function struct {
	Runtime, Handler, Architecture string
	Code, BuildMethod              string
	MemoryMB, TimeoutSeconds       float64
	Role                           string
	Environment                    map[string]string
}

func functions(t *testing.T) map[string]function {
	t.Helper()
	tmpl := load(t)
	out := map[string]function{}
	for _, id := range tmpl.ofType("AWS::Serverless::Function") {
		p := tmpl.Resources[id].Properties
		variables := map[string]string{}
		for name, value := range at(t, p, "Environment", "Variables").(object) {
			variables[name] = text(value)
		}
		out[id] = function{
			Runtime:        text(p["Runtime"]),
			Handler:        text(p["Handler"]),
			Architecture:   strings.Join(list(p["Architectures"]), ","),
			Code:           text(p["CodeUri"]),
			BuildMethod:    text(tmpl.Resources[id].Metadata["BuildMethod"]),
			MemoryMB:       p["MemorySize"].(float64),
			TimeoutSeconds: p["Timeout"].(float64),
			Role:           text(p["Role"]),
			Environment:    variables,
		}
	}
	return out
}

func TestEveryFunctionIsBuiltAndConfiguredAsItsCodeExpects(t *testing.T) {
	arm := function{
		Runtime: "provided.al2023", Handler: "bootstrap", Architecture: "arm64", Code: ".", BuildMethod: "makefile",
	}
	want := map[string]function{}
	for id, size := range map[string][2]float64{
		"IngressFunction":    {512, 3},
		"RelayFunction":      {256, 30},
		"ProcessorFunction":  {512, 30},
		"DispatcherFunction": {512, 60},
		"ReconcilerFunction": {512, 60},
		"CanaryFunction":     {256, 60},
	} {
		f := arm
		f.MemoryMB, f.TimeoutSeconds = size[0], size[1]
		f.Role = strings.TrimSuffix(id, "Function") + "Role.Arn"
		f.Environment = environment[id]
		want[id] = f
	}
	if diff := cmp.Diff(want, functions(t)); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
}

// The collector's limit leaves a quarter of the memory for what is not on Go's heap.
func TestTheCollectorsLimitFollowsTheMemory(t *testing.T) {
	for id, f := range functions(t) {
		limit, ok := f.Environment["GOMEMLIMIT"]
		if want := fmt.Sprintf("%gMiB", f.MemoryMB*3/4); ok && limit != want {
			t.Errorf("%s: GOMEMLIMIT %s beside %g MB, want %s", id, limit, f.MemoryMB, want)
		}
	}
}

// Variables that only reach the environment have text defaults: goformation puts nothing else into one.
func TestParametersInTheEnvironmentHaveTextDefaults(t *testing.T) {
	tmpl := load(t)
	for id, f := range functions(t) {
		for variable, value := range f.Environment {
			parameter, ok := tmpl.Parameters[value]
			if !ok {
				continue
			}
			if _, ok := parameter["Default"].(string); !ok {
				t.Errorf("%s of %s: the default of %s is %v, not text", variable, id, value, parameter["Default"])
			}
		}
	}
}

// Proves X2: an attempt ends, and its answer is recorded, before its function is stopped; and its lease, which another
// worker waits for, ends later than it does.
func TestAnAttemptEndsBeforeItsFunctionAndItsLease(t *testing.T) {
	seconds := func(parameter string) (n float64) {
		if err := json.Unmarshal([]byte(text(load(t).Parameters[parameter]["Default"])), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const recording, slack = 10, 30
	attempt, lease, timeout := seconds("DeliveryAttemptSeconds"), seconds("DeliveryLeaseSeconds"), functions(t)["DispatcherFunction"].TimeoutSeconds
	if attempt+recording > timeout || attempt+slack > lease {
		t.Errorf("an attempt of %v s with a lease of %v s in a function of %v s", attempt, lease, timeout)
	}
}

// Proves W1: a worker's lease outlives its longest invocation, with as much again for clocks and commits.
func TestTheLeaseIsTwiceAsLongAsTheProcessorMayRun(t *testing.T) {
	var seconds float64
	if err := json.Unmarshal([]byte(text(load(t).Parameters["LeaseSeconds"]["Default"])), &seconds); err != nil {
		t.Fatal(err)
	}
	if timeout := functions(t)["ProcessorFunction"].TimeoutSeconds; seconds < 2*timeout {
		t.Errorf("the lease of %v s is less than twice the timeout of %v s", seconds, timeout)
	}
}

// Proves W5: one bad record holds nothing up for a day and is reported, not dropped.
func TestTheStreamMappingIsBounded(t *testing.T) {
	got := at(t, load(t).Resources["RelayFunction"].Properties, "Events")
	want := object{"OutboxStream": object{"Type": "DynamoDB", "Properties": object{
		"Stream":                         attribute("OutboxTable.StreamArn"),
		"StartingPosition":               "TRIM_HORIZON",
		"BatchSize":                      100.0,
		"MaximumBatchingWindowInSeconds": 0.0,
		"ParallelizationFactor":          10.0,
		"BisectBatchOnFunctionError":     true,
		"MaximumRetryAttempts":           20.0,
		"MaximumRecordAgeInSeconds":      21600.0,
		"FunctionResponseTypes":          []any{"ReportBatchItemFailures"},
		"DestinationConfig": object{
			"OnFailure": object{"Type": "SQS", "Destination": attribute("RelayFailures.Arn")},
		},
		"FilterCriteria": object{"Filters": []any{object{
			"Pattern": `{"eventName":["INSERT","MODIFY"],"dynamodb":{"NewImage":{"pa":{"N":[{"exists":false}]}}}}`,
		}}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the relay's events (-want +got):\n%s", diff)
	}
}

// Proves W5: a poison message spoils no batch, and a backlog has a bounded appetite.
func TestTheQueueMappingsAreBounded(t *testing.T) {
	for name, queue := range map[string]string{"Processor": "EventQueue", "Dispatcher": "DeliveryQueue"} {
		got := at(t, load(t).Resources[name+"Function"].Properties, "Events")
		want := object{queue: object{"Type": "SQS", "Properties": object{
			"Queue":                 attribute(queue + ".Arn"),
			"BatchSize":             10.0,
			"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
			"ScalingConfig":         object{"MaximumConcurrency": ref(name + "MaximumConcurrency")},
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", name, diff)
		}
	}
}

// Proves R1: somebody looks every minute, and the next minute is the only retry.
func TestTheReconcilerRunsEveryMinute(t *testing.T) {
	got := at(t, load(t).Resources["ReconcilerFunction"].Properties, "Events", "EveryMinute").(object)
	delete(got["Properties"].(object), "Description")
	want := object{"Type": "ScheduleV2", "Properties": object{
		"OmitName":           true,
		"ScheduleExpression": "rate(1 minute)",
		"FlexibleTimeWindow": object{"Mode": "OFF"},
		"RetryPolicy":        object{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the reconciler's schedule (-want +got):\n%s", diff)
	}
}

// Proves M3: who asked for canaries has one in five minutes, and a run ends before its function does. Who did not has
// neither the function, which may read signing secrets, nor an alarm that waits for it.
func TestCanariesAreOnlyWhereTheyAreWanted(t *testing.T) {
	tmpl := load(t)
	got := at(t, tmpl.Resources["CanaryFunction"].Properties, "Events", "EveryFiveMinutes").(object)
	delete(got["Properties"].(object), "Description")
	want := object{"Type": "ScheduleV2", "Properties": object{
		"OmitName":           true,
		"ScheduleExpression": "rate(5 minutes)",
		"FlexibleTimeWindow": object{"Mode": "OFF"},
		"RetryPolicy":        object{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the canary's schedule (-want +got):\n%s", diff)
	}
	var optional []string
	for id, r := range tmpl.Resources {
		if strings.HasPrefix(id, "Canary") {
			optional = append(optional, id+" "+r.Condition)
		}
	}
	slices.Sort(optional)
	wantOptional := []string{
		"CanaryFunction HasCanary", "CanaryLogs HasCanary", "CanaryMayLog HasCanary", "CanaryMissing HasCanary", "CanaryRole HasCanary", "CanarySilent HasCanary",
	}
	if diff := cmp.Diff(wantOptional, optional); diff != "" {
		t.Errorf("what the condition keeps away (-want +got):\n%s", diff)
	}
	const lastLook, start = 2, 5
	longest, timeout := 50.0, functions(t)["CanaryFunction"].TimeoutSeconds
	if pattern := text(tmpl.Parameters["CanarySeconds"]["AllowedPattern"]); !strings.HasSuffix(pattern, "|50)$") || longest+lastLook+start > timeout {
		t.Errorf("a canary of up to %v s (%s) in a function of %v s", longest, pattern, timeout)
	}
}

// `sam build` calls build-<LogicalId> for every function.
func TestTheMakefileBuildsEveryFunction(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(makefile), "FUNCTIONS := ")
	line, _, _ := strings.Cut(rest, "\n")
	got := strings.Fields(line)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(environment)), got); diff != "" {
		t.Errorf("FUNCTIONS of the Makefile (-want +got):\n%s", diff)
	}
}

// What is built by default is what the template has AWS run.
func TestTheMakefileBuildsForTheDeclaredArchitecture(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(makefile), "LAMBDA_GOARCH ?= ")
	built, _, _ := strings.Cut(rest, "\n")
	got, want := map[string]string{}, map[string]string{}
	for id, f := range functions(t) {
		got[id], want[id] = f.Architecture, built
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("architectures (-Makefile +template):\n%s", diff)
	}
}

// `sam local` overrides variables, it adds none: the file and the template must agree.
func TestTheSamLocalEnvironmentCoversEveryFunction(t *testing.T) {
	data, err := os.ReadFile("../../infra/sam-local.env.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]map[string]string
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	got, want := map[string][]string{}, map[string][]string{}
	for id, variables := range file {
		got[id] = slices.Sorted(maps.Keys(variables))
	}
	for id, variables := range environment {
		want[id] = slices.AppendSeq([]string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"}, maps.Keys(variables))
		slices.Sort(want[id])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("infra/sam-local.env.json (-want +got):\n%s", diff)
	}
}
