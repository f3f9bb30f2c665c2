package templatetest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// transformed is the template as CloudFormation sees it: SAM's own translator has put plain resources in place of functions
// and their events. The code is what `sam package` would have uploaded.
func transformed(t *testing.T, code string, parameters map[string]string) template {
	t.Helper()
	python, err := filepath.Abs("../../build/tools/venv/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("SAM's translator is not there; scripts/tools.sh python fetches it")
	}
	if parameters == nil {
		parameters = map[string]string{}
	}
	given, err := json.Marshal(map[string]any{"code": code, "parameters": parameters})
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "../../scripts/transform.py", templatePath, string(given))
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	var raw any
	if err := json.Unmarshal(out.Bytes(), &raw); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(shortened(raw))
	if err != nil {
		t.Fatal(err)
	}
	var tmpl template
	if err := json.Unmarshal(data, &tmpl); err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// versionID is a version's logical id: the digest behind it is what makes CloudFormation publish another.
var versionID = regexp.MustCompile(`^([A-Za-z]+FunctionVersion)[0-9a-f]{10}$`)

// shortened writes an attribute as load does, "X.Arn" and not ["X", "Arn"], and a list of dependencies even where it is one.
// The digest in a version's id is left out of the attribute.
func shortened(v any) any {
	switch v := v.(type) {
	case []any:
		for i, child := range v {
			v[i] = shortened(child)
		}
	case object:
		for key, child := range v {
			v[key] = shortened(child)
			path, ok := v[key].([]any)
			if key == "Fn::GetAtt" && ok {
				v[key] = versionID.ReplaceAllString(text(path[0]), "$1") + "." + text(path[1])
			}
			if one, ok := v[key].(string); ok && key == "DependsOn" {
				v[key] = []any{one}
			}
		}
	}
	return v
}

const packaged = "s3://bucket/one"

var functionIDs = []string{"CanaryFunction", "DispatcherFunction", "IngressFunction", "ProcessorFunction", "ReconcilerFunction", "RelayFunction"}

// The translator takes a second, so what looks at the template as it stands by default looks at one run of it.
func TestTheTransformedTemplate(t *testing.T) {
	all := transformed(t, packaged, nil)
	for name, test := range map[string]func(*testing.T, template){
		"SAM adds versions, aliases, mappings, and nothing else":       addsNothingElse,
		"SAM leaves everything but functions as it stands":             leavesTheRest,
		"functions are the declared ones":                              functionsAreTheDeclaredOnes,
		"every function has the alias live and keeps its old versions": everyFunctionIsLive,
		"mappings feed the aliases":                                    mappingsFeedTheAliases,
		"a schedule may call its function's alias, and nothing else":   schedulesCallOneAlias,
		"the front door waits for the alias that it names":             theDoorWaitsForItsAlias,
		"the reconciler's version takes over at once":                  theReconcilerDoesNotShift,
	} {
		t.Run(name, func(t *testing.T) { test(t, all) })
	}
}

// What SAM adds is a decision as well: no role but the schedule's, and nothing that carries a managed policy.
func addsNothingElse(t *testing.T, all template) {
	t.Helper()
	file := load(t)
	got := map[string]string{}
	for id, r := range all.Resources {
		if _, ours := file.Resources[id]; !ours {
			got[versionID.ReplaceAllString(id, "$1")] = r.Type
		}
	}
	want := map[string]string{
		"ServerlessDeploymentApplication":    "AWS::CodeDeploy::Application",
		"RelayFunctionOutboxStream":          "AWS::Lambda::EventSourceMapping",
		"ProcessorFunctionEventQueue":        "AWS::Lambda::EventSourceMapping",
		"DispatcherFunctionDeliveryQueue":    "AWS::Lambda::EventSourceMapping",
		"ReconcilerFunctionEveryMinute":      "AWS::Scheduler::Schedule",
		"ReconcilerFunctionEveryMinuteRole":  "AWS::IAM::Role",
		"CanaryFunctionEveryFiveMinutes":     "AWS::Scheduler::Schedule",
		"CanaryFunctionEveryFiveMinutesRole": "AWS::IAM::Role",
	}
	for _, function := range functionIDs {
		want[function+"Version"], want[function+"Aliaslive"] = "AWS::Lambda::Version", "AWS::Lambda::Alias"
	}
	for _, function := range shifted {
		want[function+"DeploymentGroup"] = "AWS::CodeDeploy::DeploymentGroup"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what SAM adds (-want +got):\n%s", diff)
	}
	for id := range file.Resources {
		if _, kept := all.Resources[id]; !kept {
			t.Errorf("SAM leaves %s out", id)
		}
	}
}

func everyFunctionIsLive(t *testing.T, tmpl template) {
	t.Helper()
	got, want := map[string]object{}, map[string]object{}
	for _, function := range functionIDs {
		p := maps.Clone(tmpl.Resources[function+"Aliaslive"].Properties)
		delete(p, "ProvisionedConcurrencyConfig")
		got[function] = p
		want[function] = object{"Name": "live", "FunctionName": ref(function), "FunctionVersion": attribute(function + "Version.Version")}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	for _, id := range tmpl.ofType("AWS::Lambda::Version") {
		if got := tmpl.Resources[id].DeletionPolicy; got != "Retain" {
			t.Errorf("%s is %q when the next one comes: there is nothing to go back to", id, got)
		}
	}
	provision := object{"Fn::If": []any{
		"HasIngressProvision", object{"ProvisionedConcurrentExecutions": ref("IngressProvisionedConcurrency")}, ref("AWS::NoValue"),
	}}
	if diff := cmp.Diff(any(provision), tmpl.Resources["IngressFunctionAliaslive"].Properties["ProvisionedConcurrencyConfig"]); diff != "" {
		t.Errorf("provisioned concurrency (-want +got):\n%s", diff)
	}
}

// Proves W5: what the mappings of the file say is what Lambda is told, and it is the alias that they feed.
func mappingsFeedTheAliases(t *testing.T, tmpl template) {
	t.Helper()
	got := map[string]object{}
	for _, id := range tmpl.ofType("AWS::Lambda::EventSourceMapping") {
		got[id] = tmpl.Resources[id].Properties
	}
	queue := func(function, queue string) object {
		return object{
			"FunctionName": ref(function + "FunctionAliaslive"), "EventSourceArn": attribute(queue + ".Arn"), "BatchSize": 10.0,
			"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
			"ScalingConfig":         object{"MaximumConcurrency": ref(function + "MaximumConcurrency")},
		}
	}
	want := map[string]object{
		"RelayFunctionOutboxStream": {
			"FunctionName": ref("RelayFunctionAliaslive"), "EventSourceArn": attribute("OutboxTable.StreamArn"),
			"StartingPosition": "TRIM_HORIZON", "BatchSize": 100.0, "MaximumBatchingWindowInSeconds": 0.0, "ParallelizationFactor": 10.0,
			"BisectBatchOnFunctionError": true, "MaximumRetryAttempts": 20.0, "MaximumRecordAgeInSeconds": 21600.0,
			"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
			"DestinationConfig":     object{"OnFailure": object{"Destination": attribute("RelayFailures.Arn")}},
			"FilterCriteria": object{"Filters": []any{object{
				"Pattern": `{"eventName":["INSERT","MODIFY"],"dynamodb":{"NewImage":{"pa":{"N":[{"exists":false}]}}}}`,
			}}},
		},
		"ProcessorFunctionEventQueue":     queue("Processor", "EventQueue"),
		"DispatcherFunctionDeliveryQueue": queue("Dispatcher", "DeliveryQueue"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
}

// The schedule's role is the one that SAM makes: it may call one alias.
func schedulesCallOneAlias(t *testing.T, tmpl template) {
	t.Helper()
	for function, schedule := range map[string]string{"ReconcilerFunction": "EveryMinute", "CanaryFunction": "EveryFiveMinutes"} {
		target := at(t, tmpl.Resources[function+schedule].Properties, "Target")
		want := object{
			"Arn":         ref(function + "Aliaslive"),
			"RoleArn":     attribute(function + schedule + "Role.Arn"),
			"RetryPolicy": object{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0},
		}
		if diff := cmp.Diff(any(want), target); diff != "" {
			t.Errorf("target (-want +got):\n%s", diff)
		}
		got := grants(t, tmpl)[function+schedule+"Role"]
		if diff := cmp.Diff([]string{"lambda:InvokeFunction on " + function + "Aliaslive"}, got); diff != "" {
			t.Errorf("what the schedule may do (-want +got):\n%s", diff)
		}
	}
}

// The front door names the alias in text, so it must wait for it.
func theDoorWaitsForItsAlias(t *testing.T, tmpl template) {
	t.Helper()
	alias := tmpl.Resources["IngressFunctionAliaslive"].Properties
	if name := text(liveIngress); !strings.HasSuffix(name, ":"+text(alias["Name"])) || alias["Name"] == nil {
		t.Errorf("the door names %s, the alias is %v", name, alias["Name"])
	}
	got := map[string][]string{}
	for _, id := range []string{"FrontDoorToIngress", "FrontDoorMayInvokeIngress"} {
		got[id] = tmpl.Resources[id].DependsOn
	}
	want := map[string][]string{
		"FrontDoorToIngress":        {"IngressFunctionAliaslive", "FrontDoorMayInvokeIngress"},
		"FrontDoorMayInvokeIngress": {"IngressFunctionAliaslive"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DependsOn (-want +got):\n%s", diff)
	}
}

// SAM publishes a version for what was built, and for the text of memory and environment. A parameter's value is not among
// them, so a build carries a digest of the settings; the next test holds that.
func TestAVersionIsPublishedForABuildAndNotForAParameter(t *testing.T) {
	versions := func(code string, parameters map[string]string) []string {
		return transformed(t, code, parameters).ofType("AWS::Lambda::Version")
	}
	first := versions(packaged, nil)
	if len(first) != len(functionIDs) {
		t.Fatalf("versions %q", first)
	}
	if diff := cmp.Diff(first, versions(packaged, map[string]string{"BodyDays": "60", "Tracing": "Active"})); diff != "" {
		t.Errorf("SAM sees the values of parameters by now, and the digest in a build can go:\n%s", diff)
	}
	for _, id := range versions("s3://bucket/two", nil) {
		if slices.Contains(first, id) {
			t.Errorf("%s is the same for two builds: the second would not run", id)
		}
	}
}

// A setting that is changed alone has to change what is built, or the alias would stay with the old one in silence.
func TestABuildDiffersWhenASettingDoes(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	put("Makefile", string(makefile), 0o600)
	put("bin/go", "#!/bin/sh\n", 0o700)
	build := func(template, settings string, words ...string) string {
		t.Helper()
		put("template.yaml", template, 0o600)
		put("samconfig.toml", settings, 0o600)
		cmd := exec.CommandContext(t.Context(), "make", "-C", dir, "build-RelayFunction", "ARTIFACTS_DIR="+filepath.Join(dir, "out"))
		cmd.Args = append(cmd.Args, words...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		digest, err := os.ReadFile(filepath.Join(dir, "out", "settings.sha256"))
		if err != nil {
			t.Fatal(err)
		}
		return string(digest)
	}
	one := build("a", "b")
	if again := build("a", "b"); again != one || len(one) < 64 {
		t.Errorf("the same settings give %q and %q", one, again)
	}
	if build("c", "b") == one || build("a", "c") == one {
		t.Error("another template or another setting gives the same build")
	}
	if build("a", "b", "RELEASE=2") == one {
		t.Error("a mark gives the same build")
	}
}

// What is asserted of the file's tables, roles, queues and alarms holds for what CloudFormation makes: SAM touches nothing but
// functions.
func leavesTheRest(t *testing.T, all template) {
	t.Helper()
	file := load(t)
	got, want := map[string]resource{}, map[string]resource{}
	for id, r := range file.Resources {
		if r.Type != "AWS::Serverless::Function" {
			want[id], got[id] = r, all.Resources[id]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-the file +transformed):\n%s", diff)
	}
}

// Proves S4: a function runs with the role of the file, and SAM adds no policy to it.
func functionsAreTheDeclaredOnes(t *testing.T, all template) {
	t.Helper()
	file := load(t)
	for _, function := range functionIDs {
		got := maps.Clone(all.Resources[function].Properties)
		declared := file.Resources[function].Properties
		want := object{
			"Code":          object{"S3Bucket": "bucket", "S3Key": "one"},
			"TracingConfig": object{"Mode": ref("Tracing")},
			"Tags":          []any{object{"Key": "lambda:createdBy", "Value": "SAM"}},
		}
		for _, same := range []string{"Description", "Handler", "Runtime", "Architectures", "MemorySize", "Timeout", "Role", "Environment", "ReservedConcurrentExecutions"} {
			if declared[same] != nil {
				want[same] = declared[same]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", function, diff)
		}
	}
}
