package poller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Filter is the FilterCriteria of an event source mapping: an event passes when
// one of its patterns matches. It knows the operators exact string, number, null
// and boolean, prefix, suffix, equals-ignore-case, exists, anything-but (a value,
// a list, a prefix) and $or; any other is refused when the filter is compiled.
//
// Two traps of the real thing are kept. DynamoDB's numbers are JSON strings, so a
// numeric pattern never matches one. And exists looks at leaves only:
// {"NewImage":{"a":[{"exists":false}]}} is true of every record, as attribute a
// is an object {"S":…}; what is meant is {"a":{"S":[{"exists":false}]}}.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
type Filter struct {
	patterns []rule
}

// rule tells whether a value matches; present is false when the event has none.
type rule func(value any, present bool) bool

// CompileFilter compiles patterns, each a JSON object. No patterns make a nil
// Filter, which passes everything.
func CompileFilter(patterns []string) (*Filter, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	f := &Filter{}
	for _, text := range patterns {
		var tree map[string]any
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			return nil, fmt.Errorf("filter pattern %s: %w", text, err)
		}
		r, err := compileObject(tree)
		if err != nil {
			return nil, fmt.Errorf("filter pattern %s: %w", text, err)
		}
		f.patterns = append(f.patterns, r)
	}
	return f, nil
}

// Match reports whether an event, decoded from JSON, passes.
func (f *Filter) Match(event map[string]any) bool {
	if f == nil {
		return true
	}
	return slices.ContainsFunc(f.patterns, func(r rule) bool { return r(event, true) })
}

// compileObject makes a rule of {"key": …}: every key must match.
func compileObject(tree map[string]any) (rule, error) {
	if len(tree) == 0 {
		return nil, errors.New("an empty object matches nothing")
	}
	rules := make(map[string]rule, len(tree))
	for key, node := range tree {
		r, err := compileNode(key, node)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		rules[key] = r
	}
	return func(value any, _ bool) bool {
		object, _ := value.(map[string]any)
		for key, r := range rules {
			child, present := object[key]
			if key == "$or" {
				child, present = value, true
			}
			if !r(child, present) {
				return false
			}
		}
		return true
	}, nil
}

func compileNode(key string, node any) (rule, error) {
	switch node := node.(type) {
	case map[string]any:
		return compileObject(node)
	case []any:
		if key == "$or" {
			return compileOr(node)
		}
		return compileLeaf(node)
	}
	return nil, errors.New("want an object or a list of alternatives")
}

func compileOr(branches []any) (rule, error) {
	var rules []rule
	for _, b := range branches {
		tree, ok := b.(map[string]any)
		if !ok {
			return nil, errors.New("want a list of objects")
		}
		r, err := compileObject(tree)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return anyOf(rules), nil
}

// compileLeaf makes a rule of the alternatives of one leaf. An array in the event
// matches when one of its elements does.
func compileLeaf(alternatives []any) (rule, error) {
	if len(alternatives) == 0 {
		return nil, errors.New("an empty list matches nothing")
	}
	var rules []rule
	for _, a := range alternatives {
		r, err := compileAlternative(a)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	one := anyOf(rules)
	return func(value any, present bool) bool {
		switch value := value.(type) {
		case map[string]any:
			return one(nil, false)
		case []any:
			if len(value) == 0 {
				return one(nil, false)
			}
			return slices.ContainsFunc(value, func(v any) bool { return one(v, true) })
		}
		return one(value, present)
	}, nil
}

func anyOf(rules []rule) rule {
	return func(value any, present bool) bool {
		return slices.ContainsFunc(rules, func(r rule) bool { return r(value, present) })
	}
}

func compileAlternative(a any) (rule, error) {
	operator, ok := a.(map[string]any)
	if _, isList := a.([]any); isList {
		return nil, errors.New("a list within a list")
	}
	if !ok {
		return func(value any, present bool) bool { return present && value == a }, nil
	}
	if len(operator) != 1 {
		return nil, errors.New("want one operator an alternative")
	}
	for name, arg := range operator {
		return compileOperator(name, arg)
	}
	panic("poller: a map of length one has no key")
}

func compileOperator(name string, arg any) (rule, error) {
	text, isText := arg.(string)
	switch {
	case name == "exists":
		want, ok := arg.(bool)
		if !ok {
			return nil, errors.New("exists: want true or false")
		}
		return func(_ any, present bool) bool { return present == want }, nil
	case name == "prefix" && isText:
		return onText(func(s string) bool { return strings.HasPrefix(s, text) }), nil
	case name == "suffix" && isText:
		return onText(func(s string) bool { return strings.HasSuffix(s, text) }), nil
	case name == "equals-ignore-case" && isText:
		return onText(func(s string) bool { return strings.EqualFold(s, text) }), nil
	case name == "anything-but":
		return compileAnythingBut(arg)
	}
	return nil, fmt.Errorf("operator %q with %T is not imitated locally", name, arg)
}

func onText(test func(string) bool) rule {
	return func(value any, _ bool) bool {
		s, ok := value.(string)
		return ok && test(s)
	}
}

// compileAnythingBut makes the one negation: an absent leaf does not match it.
func compileAnythingBut(arg any) (rule, error) {
	alternatives, ok := arg.([]any)
	if !ok {
		alternatives = []any{arg}
	}
	var rules []rule
	for _, a := range alternatives {
		if operator, ok := a.(map[string]any); ok && operator["prefix"] == nil && operator["suffix"] == nil && operator["equals-ignore-case"] == nil {
			return nil, errors.New("anything-but: want values, prefix, suffix or equals-ignore-case")
		}
		r, err := compileAlternative(a)
		if err != nil {
			return nil, fmt.Errorf("anything-but: %w", err)
		}
		rules = append(rules, r)
	}
	some := anyOf(rules)
	return func(value any, present bool) bool { return present && !some(value, present) }, nil
}
