package templatetest

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// transformed is the template as SAM hands it to CloudFormation. The transform comes with the SAM CLI.
func transformed(t *testing.T) template {
	t.Helper()
	const python = "../../build/tools/venv/bin/python"
	if _, err := os.Stat(python); err != nil {
		t.Skip("the SAM CLI's transform is not installed: scripts/tools.sh python")
	}
	cmd := exec.Command(python, "../../scripts/transform.py", templatePath)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var tmpl template
	if err := json.Unmarshal(data, &tmpl); err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// short writes Fn::GetAtt: [X, Arn], as the transform has it, as "X.Arn".
func short(value any) any {
	switch v := value.(type) {
	case object:
		if path, ok := v["Fn::GetAtt"].([]any); ok {
			return attribute(strings.Join(list(path), "."))
		}
		for name, child := range v {
			v[name] = short(child)
		}
	case []any:
		for i, child := range v {
			v[i] = short(child)
		}
	}
	return value
}

// SAM leaves the roles as they are written. What it adds is the role by which the scheduler invokes its one function.
// Proves D6.
func TestTheTransformAddsNoPermission(t *testing.T) {
	after := transformed(t)
	for id, r := range after.Resources {
		r.Properties, _ = short(r.Properties).(object)
		after.Resources[id] = r
	}
	got, ours := grants(t, after), grants(t, load(t))
	for _, added := range slices.Sorted(maps.Keys(got)) {
		if ours[added] != nil {
			continue
		}
		function, found := invoked(t, got[added])
		who := text(at(t, after.Resources[added].Properties, "AssumeRolePolicyDocument", "Statement"))
		if !found || after.Resources[function].Type != "AWS::Lambda::Function" || !strings.Contains(who, `"scheduler.amazonaws.com"`) {
			t.Errorf("SAM adds %s, which lets %s do %q", added, who, got[added])
		}
		delete(got, added)
	}
	if diff := cmp.Diff(ours, got); diff != "" {
		t.Errorf("permissions (-written +transformed):\n%s", diff)
	}
	for _, id := range after.ofType("AWS::Lambda::Function") {
		if role, _, _ := strings.Cut(text(after.Resources[id].Properties["Role"]), "."); ours[role] == nil {
			t.Errorf("%s plays %s, which is none of the template's roles", id, role)
		}
	}
}

// invoked is the function that is all that these permissions let anybody invoke. An alias is named after its function.
func invoked(t *testing.T, lines []string) (function string, found bool) {
	t.Helper()
	if len(lines) != 1 {
		return "", false
	}
	resource, found := strings.CutPrefix(lines[0], "lambda:InvokeFunction on ")
	function, _, _ = strings.Cut(strings.TrimSuffix(resource, ".Arn"), "Alias")
	return function, found
}
