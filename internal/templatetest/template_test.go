package templatetest

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/goformation/v7"
	"github.com/awslabs/goformation/v7/intrinsics"
	"github.com/google/go-cmp/cmp"
)

const templatePath = "../../template.yaml"

// object is a mapping of the template, with short intrinsics in their long form: !Ref X is {"Ref": "X"}.
type object = map[string]any

// template is template.yaml with nothing resolved.
type template struct {
	Parameters map[string]object
	Mappings   map[string]map[string]object
	Resources  map[string]resource
	Rules      map[string]object
	Outputs    map[string]object
}

type resource struct {
	Type                string
	Condition           string
	DeletionPolicy      string
	UpdateReplacePolicy string
	UpdatePolicy        object
	DependsOn           []string
	Metadata            object
	Properties          object
}

func load(t *testing.T) template {
	t.Helper()
	return loadFile(t, templatePath)
}

func loadFile(t *testing.T, path string) template {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := intrinsics.ProcessYAML(text, &intrinsics.ProcessorOptions{NoProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	var tmpl template
	if err := json.Unmarshal(data, &tmpl); err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// ofType returns the logical ids of a type, sorted.
func (tmpl template) ofType(kind string) []string {
	var ids []string
	for id, r := range tmpl.Resources {
		if r.Type == kind {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// at walks mappings by name and fails the test where one is missing.
func at(t *testing.T, from any, path ...string) any {
	t.Helper()
	for i, name := range path {
		m, ok := from.(object)
		if !ok || m[name] == nil {
			t.Fatalf("the template has no %s", strings.Join(path[:i+1], "."))
		}
		from = m[name]
	}
	return from
}

// text writes a value as one reads it in the template: a reference as X, an attribute as X.Arn, a substitution as its text.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case object:
		for _, function := range []string{"Ref", "Fn::GetAtt", "Fn::Sub"} {
			if s, ok := v[function].(string); ok {
				return s
			}
		}
	}
	data, _ := json.Marshal(value) // a value that came out of JSON goes back into it
	return string(data)
}

// list reads one value or several, as IAM policies may have it.
func list(value any) []string {
	many, ok := value.([]any)
	if !ok {
		return []string{text(value)}
	}
	var out []string
	for _, v := range many {
		out = append(out, text(present(v)))
	}
	return out
}

// present is the value of a condition that leaves out what it does not hold for, and any other value as it is.
func present(value any) any {
	if v, ok := value.(object); ok {
		if parts, ok := v["Fn::If"].([]any); ok && len(parts) == 3 && cmp.Equal(parts[2], any(ref("AWS::NoValue"))) {
			return parts[1]
		}
	}
	return value
}

func ref(id string) object       { return object{"Ref": id} }
func attribute(of string) object { return object{"Fn::GetAtt": of} }

// The local stack reads the same file with goformation, which refuses properties that it does not know. With conditions
// evaluated it puts a condition's value in place of a whole resource that has one; so the local stack takes them out
// before (internal/devstack/stack).
func TestGoformationReadsTheTemplate(t *testing.T) {
	for name, opts := range map[string]*intrinsics.ProcessorOptions{
		"as Open does":              nil,
		"with conditions evaluated": {EvaluateConditions: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := goformation.ParseJSONWithOptions(unconditional(t), opts)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Sorted(maps.Keys(load(t).Resources))
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got.Resources))); diff != "" {
				t.Errorf("resources (-in the file +read):\n%s", diff)
			}
		})
	}
}

// unconditional is the template without the conditions of resources and outputs, in JSON: goformation puts a condition's value in place
// of the whole resource where it evaluates them, so the local stack takes them out as well.
func unconditional(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	data, err := intrinsics.ProcessYAML(text, &intrinsics.ProcessorOptions{NoProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	var all object
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{"Resources", "Outputs"} {
		for _, entry := range all[section].(object) {
			delete(entry.(object), "Condition")
		}
	}
	if data, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	return data
}

// A name would block the replacement of a resource and a second stack in the same account.
func TestNothingHasAPhysicalName(t *testing.T) {
	named := []string{"TableName", "QueueName", "BucketName", "FunctionName", "RoleName", "AlarmName", "ManagedPolicyName"}
	callers := map[string]bool{"AWS::Lambda::Permission": true} // its FunctionName says whom it is about
	for id, r := range load(t).Resources {
		for _, property := range named {
			if r.Properties[property] != nil && !callers[r.Type] {
				t.Errorf("%s has a %s", id, property)
			}
		}
	}
}

// `dakghar --stack NAME` reads these.
func TestOutputsNameWhatTheCommandNeeds(t *testing.T) {
	got := map[string]string{}
	for name, output := range load(t).Outputs {
		got[name] = text(output["Value"])
	}
	want := map[string]string{
		"FrontDoorUrl": `{"Fn::If":["HasDomain",{"Fn::Sub":"https://${DomainName}"},` +
			`{"Fn::Sub":"https://${FrontDoor}.execute-api.${AWS::Region}.${AWS::URLSuffix}"}]}`,
		"FrontDoorDomainTarget":    "FrontDoorDomain.RegionalDomainName",
		"InboxTableName":           "InboxTable",
		"OutboxTableName":          "OutboxTable",
		"BodyTableName":            "BodyTable",
		"BusinessTableName":        "BusinessTable",
		"RegistryTableName":        "RegistryTable",
		"EventQueueUrl":            "EventQueue",
		"EventDeadLettersUrl":      "EventDeadLetters",
		"DeliveryTableName":        "DeliveryTable",
		"DeliveryQueueUrl":         "DeliveryQueue",
		"DeliveryDeadLettersUrl":   "DeliveryDeadLetters",
		"RelayFailuresUrl":         "RelayFailures",
		"BodyBucketName":           "BodyBucket",
		"DataKeyArn":               "DataKey.Arn",
		"SecretPrefix":             "${AWS::StackName}/endpoint/",
		"SubscriptionSecretPrefix": "${AWS::StackName}/subscription/",
		"InboxDays":                "InboxDays",
		"BodyDays":                 "BodyDays",
		"BodyInlineBytes":          "BodyInlineBytes",
		"IngressFunctionName":      "IngressFunction",
		"RelayFunctionName":        "RelayFunction",
		"ProcessorFunctionName":    "ProcessorFunction",
		"DispatcherFunctionName":   "DispatcherFunction",
		"ReconcilerFunctionName":   "ReconcilerFunction",
		"CanaryFunctionName":       "CanaryFunction",
		"WarmWriteUnits":           "WarmWriteUnits",
		"WarmReadUnits":            "WarmReadUnits",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

// A stack that is deployed with no parameter at all is safe, and takes nothing that an account may not have.
func TestDefaultsAreSafe(t *testing.T) {
	got := map[string]any{}
	for name, parameter := range load(t).Parameters {
		got[name] = parameter["Default"]
	}
	want := map[string]any{
		"DomainName":                    "",
		"DomainCertificateArn":          "",
		"DomainHostedZoneId":            "",
		"TruststoreUri":                 "",
		"TruststoreVersion":             "",
		"IngressProvisionedConcurrency": "0",
		"ReserveForWorkers":             false,
		"Tracing":                       "PassThrough",
		"DeployShift":                   "AllAtOnce",
		"RouteRatePerSecond":            2500.0,
		"RouteBurst":                    4000.0,
		"CoarseRate":                    "1000",
		"CoarseBurst":                   "2000",
		"IngressReservedConcurrency":    0.0,
		"ProcessorMaximumConcurrency":   200.0,
		"DispatcherMaximumConcurrency":  50.0,
		"WarmWriteUnits":                0.0,
		"WarmReadUnits":                 0.0,
		"DisableExecuteApiEndpoint":     false,
		"BodyDays":                      "30",
		"InboxDays":                     "400",
		"LogDays":                       30.0,
		"DeletionProtection":            true,
		"PointInTimeRecovery":           true,
		"TableKey":                      "aws-owned",
		"BodyInlineBytes":               "32768",
		"RetryProfile":                  "standard",
		"AttemptsMax":                   "",
		"GapMinutes":                    "60",
		"LeaseSeconds":                  "60",
		"DeliveryAttemptSeconds":        "25",
		"DeliveryLeaseSeconds":          "60",
		"SinkQueueArns":                 "",
		"SinkBusArns":                   "",
		"AlsoOwnHosts":                  "",
		"AlarmTopicArn":                 "",
		"NoticeTopicArn":                "",
		"RunbookBaseUrl":                "docs/operate",
		"AckMillisecondsMax":            400.0,
		"OldestOpenSecondsMax":          600.0,
		"QueueSecondsMax":               300.0,
		"SignatureFailuresMax":          50.0,
		"SourceRefusalsMax":             0.0,
		"SecretAgeSecondsMax":           1800.0,
		"ThrottlesMax":                  10.0,
		"RotationDaysMax":               14.0,
		"Canary":                        false,
		"CanaryUrl":                     "",
		"CanarySeconds":                 "45",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parameter defaults (-want +got):\n%s", diff)
	}
}
