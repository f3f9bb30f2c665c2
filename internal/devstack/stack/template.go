package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/awslabs/goformation/v7/intrinsics"
)

// Account is the account of every ARN of the local stack.
const Account = "000000000000"

// template is what is left of a template after its intrinsic functions: text with
// marks where it refers to resources.
type template struct {
	resources map[string]declared
	outputs   map[string]json.RawMessage
}

type declared struct {
	kind       string
	properties any
}

// settings are the values of pseudo parameters, and parameters that are not to
// have their defaults.
type settings struct {
	stackName  string
	region     string
	parameters map[string]string
}

func (s settings) pseudo(name string) (string, bool) {
	value, ok := map[string]string{
		"AWS::AccountId": Account,
		"AWS::Partition": "aws",
		"AWS::Region":    s.region,
		"AWS::StackId":   fmt.Sprintf("arn:aws:cloudformation:%s:%s:stack/%s/local", s.region, Account, s.stackName),
		"AWS::StackName": s.stackName,
		"AWS::URLSuffix": "amazonaws.com",
	}[name]
	return value, ok
}

// document is the part of a template that we look at.
type document struct {
	Parameters map[string]struct{ Default any }
	Globals    any
	Resources  map[string]map[string]any
	Outputs    map[string]map[string]any
}

// parsing guards goformation's intrinsics, which keep their tags in package
// variables and cannot be used from two goroutines at once.
var parsing sync.Mutex //nolint:gochecknoglobals // the library's own state is global

// parse reads a template in YAML or JSON.
func parse(text []byte, s settings) (*template, error) {
	parsing.Lock()
	defer parsing.Unlock()
	long, err := intrinsics.ProcessYAML(text, &intrinsics.ProcessorOptions{NoProcess: true})
	if err != nil {
		return nil, err
	}
	var raw document
	if err := json.Unmarshal(long, &raw); err != nil {
		return nil, err
	}
	if raw.Globals != nil {
		return nil, errors.New("globals are not read locally: write the properties at each function")
	}
	// goformation would put a condition's value in place of the whole resource.
	conditions := takeConditions(raw.Resources, raw.Outputs)
	long, err = replaceSections(long, raw)
	if err != nil {
		return nil, err
	}
	r := &resolver{settings: s, doc: raw}
	processed, err := intrinsics.ProcessJSON(long, &intrinsics.ProcessorOptions{
		ParameterOverrides:        overrides(s.parameters),
		IntrinsicHandlerOverrides: r.handlers(),
		EvaluateConditions:        true,
	})
	if err = errors.Join(err, errors.Join(r.problems...)); err != nil {
		return nil, err
	}
	return r.collect(processed, conditions)
}

func overrides(parameters map[string]string) map[string]any {
	out := make(map[string]any, len(parameters))
	for name, value := range parameters {
		out[name] = value
	}
	return out
}

// takeConditions removes the condition of each resource and output and returns
// them by section and name.
func takeConditions(sections ...map[string]map[string]any) map[string]string {
	out := map[string]string{}
	for _, section := range sections {
		for id, body := range section {
			if name, ok := body["Condition"].(string); ok {
				out[id] = name
				delete(body, "Condition")
			}
		}
	}
	return out
}

func replaceSections(text []byte, with document) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	all["Resources"], all["Outputs"] = with.Resources, with.Outputs
	return json.Marshal(all)
}

// collect takes the resources and outputs whose condition holds.
func (r *resolver) collect(processed []byte, conditions map[string]string) (*template, error) {
	var doc struct {
		Conditions map[string]bool
		Resources  map[string]struct {
			Type       string
			Properties any
		}
		Outputs map[string]struct{ Value json.RawMessage }
	}
	if err := json.Unmarshal(processed, &doc); err != nil {
		return nil, err
	}
	holds := func(id string) bool {
		name, conditional := conditions[id]
		return !conditional || doc.Conditions[name]
	}
	t := &template{resources: map[string]declared{}, outputs: map[string]json.RawMessage{}}
	for id, res := range doc.Resources {
		if holds(id) {
			t.resources[id] = declared{kind: res.Type, properties: withoutNulls(res.Properties)}
		}
	}
	for name, out := range doc.Outputs {
		if holds(name) {
			t.outputs[name] = out.Value
		}
	}
	return t, nil
}

// withoutNulls drops what AWS::NoValue left behind.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			if child == nil {
				delete(v, key)
			} else {
				v[key] = withoutNulls(child)
			}
		}
	case []any:
		kept := slices.DeleteFunc(v, func(child any) bool { return child == nil })
		for i, child := range kept {
			kept[i] = withoutNulls(child)
		}
		return kept
	}
	return v
}

// resolver holds our own versions of the intrinsic functions that goformation
// does not resolve, or resolves to nothing without a word.
type resolver struct {
	settings settings
	doc      document
	problems []error
}

func (r *resolver) handlers() map[string]intrinsics.IntrinsicHandler {
	refuse := func(name string, _, _ any) any { return r.problem("%s is not imitated locally", name) }
	return map[string]intrinsics.IntrinsicHandler{
		"Ref":             func(_ string, in, _ any) any { return r.ref(in) },
		"Fn::GetAtt":      func(_ string, in, _ any) any { return r.getAtt(in) },
		"Fn::Sub":         func(_ string, in, _ any) any { return r.sub(in) },
		"Fn::Equals":      func(_ string, in, _ any) any { return r.equals(in) },
		"Fn::If":          r.ifElse,
		"Fn::ImportValue": refuse, "Fn::Cidr": refuse, "Fn::GetAZs": refuse, "Fn::Transform": refuse,
	}
}

func (r *resolver) problem(format string, args ...any) any {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
	return nil
}

func (r *resolver) ref(in any) any {
	name, _ := in.(string)
	if name == "AWS::NoValue" {
		return nil
	}
	if value, ok := r.settings.pseudo(name); ok {
		return value
	}
	if _, ok := r.doc.Resources[name]; ok {
		return mark(name, "")
	}
	parameter, ok := r.doc.Parameters[name]
	if override, given := r.settings.parameters[name]; ok && given {
		return override
	}
	switch {
	case !ok:
		return r.problem("Ref %v: no such parameter or resource", in)
	case parameter.Default == nil:
		return r.problem("parameter %s has no default: give it a value", name)
	}
	return parameter.Default
}

func (r *resolver) getAtt(in any) any {
	if parts, ok := in.([]any); ok {
		in = strings.Join(texts(parts), ".")
	}
	path, _ := in.(string)
	id, attribute, ok := strings.Cut(path, ".")
	if _, exists := r.doc.Resources[id]; !ok || !exists {
		return r.problem("Fn::GetAtt %v: no such resource", in)
	}
	return mark(id, attribute)
}

func texts(values []any) []string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// sub fills ${Name}, ${Resource.Attribute} and the names of its own map, and
// leaves ${!Literal} as ${Literal}.
func (r *resolver) sub(in any) any {
	text, ok := in.(string)
	own := map[string]any{}
	if pair, isPair := in.([]any); isPair && len(pair) == 2 {
		text, ok = pair[0].(string)
		own, _ = pair[1].(map[string]any)
	}
	if !ok {
		return r.problem("Fn::Sub of %T", in)
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return r.problem("Fn::Sub: ${ without } in %q", in)
		}
		text = after
		out.WriteString(r.variable(name, own))
	}
}

func (r *resolver) variable(name string, own map[string]any) string {
	if literal, ok := strings.CutPrefix(name, "!"); ok {
		return "${" + literal + "}"
	}
	value, ok := own[name]
	if !ok {
		value = r.reference(name)
	}
	return scalarText(value)
}

func (r *resolver) reference(name string) any {
	if strings.Contains(name, ".") {
		return r.getAtt(name)
	}
	return r.ref(name)
}

// equals compares as CloudFormation does, where every parameter is text.
func (r *resolver) equals(in any) any {
	pair, ok := in.([]any)
	if !ok || len(pair) != 2 {
		return r.problem("Fn::Equals wants two values")
	}
	return scalarText(pair[0]) == scalarText(pair[1])
}

func (r *resolver) ifElse(name string, in, doc any) any {
	choice, ok := in.([]any)
	if !ok || len(choice) != 3 {
		return r.problem("Fn::If wants a condition and two values")
	}
	conditions, _ := doc.(map[string]any)["Conditions"].(map[string]any)
	holds, isName := choice[0].(string)
	if _, known := conditions[holds].(bool); isName && !known {
		return r.problem("Fn::If: condition %s is not declared", holds)
	}
	return intrinsics.FnIf(name, in, doc)
}

// scalarText is a value as CloudFormation would put it into a text.
func scalarText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	encoded, err := json.Marshal(v) // numbers and truth values: no exponent below 1e21
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(encoded)
}
