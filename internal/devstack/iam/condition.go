package iam

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// condition is one key of one operator; all of a statement must hold.
type condition struct {
	quantifier string // "ForAllValues", "ForAnyValue" or "", which wants one value
	operator   string
	key        string // in small letters: AWS does not tell capitals apart in names of keys
	values     []string
}

// compares says whether a value of a request is one that a policy names.
var compares = map[string]func(written, value string) bool{ //nolint:gochecknoglobals // a table, never written
	"StringEquals": func(written, value string) bool { return written == value },
	"StringLike":   Like,
	"Bool":         strings.EqualFold,
}

func readConditions(operators map[string]map[string]oneOrMore) ([]condition, error) {
	var out []condition
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		quantifier, operator, quantified := strings.Cut(name, ":")
		if !quantified {
			quantifier, operator = "", name
		}
		known := compares[operator] != nil || operator == "Null" && !quantified
		if !known || quantified && quantifier != "ForAllValues" && quantifier != "ForAnyValue" {
			return nil, fmt.Errorf("condition operator %s is not known here", name)
		}
		for _, key := range slices.Sorted(maps.Keys(operators[name])) {
			values := operators[name][key]
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "${") }) {
				return nil, fmt.Errorf("condition %s of %s: policy variables are not known here", name, key)
			}
			out = append(out, condition{quantifier: quantifier, operator: operator, key: strings.ToLower(key), values: values})
		}
	}
	return out, nil
}

// holds tells whether a request fulfils the condition. A key that the request
// does not have fails every comparison, but not ForAllValues, which holds for
// none of it: what must be there takes Null: false beside it.
func (c condition) holds(context map[string][]string) bool {
	got, present := context[c.key]
	if c.operator == "Null" {
		return slices.ContainsFunc(c.values, func(absent string) bool { return strings.EqualFold(absent, "true") != present })
	}
	switch c.quantifier {
	case "ForAllValues":
		return !slices.ContainsFunc(got, func(v string) bool { return !c.names(v) })
	case "ForAnyValue":
		return slices.ContainsFunc(got, c.names)
	}
	return len(got) == 1 && c.names(got[0])
}

func (c condition) names(value string) bool {
	_, ok := c.naming(value)
	return ok
}

// naming is the first of the condition's values that names a value of a request.
func (c condition) naming(value string) (string, bool) {
	i := slices.IndexFunc(c.values, func(written string) bool { return compares[c.operator](written, value) })
	if i < 0 {
		return "", false
	}
	return c.values[i], true
}

// Like compares a text with a pattern in which * stands for any text and ? for
// one character.
func Like(pattern, text string) bool {
	p, t, star, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0: // the last * takes one character more
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
