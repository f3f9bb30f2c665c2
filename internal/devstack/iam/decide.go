package iam

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Role is a role with the statements of all its policies.
type Role struct {
	Name   string
	Policy Policy
}

// Request is one thing that a call asks for. A call may ask for several.
type Request struct {
	Action   string              // "dynamodb:GetItem"
	Resource string              // its ARN, "*" for an action without a resource
	Context  map[string][]string // condition keys in small letters, with their values
}

func (r Request) String() string {
	var about strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.Context)) {
		fmt.Fprintf(&about, " with %s %s", key, strings.Join(r.Context[key], ", "))
	}
	return r.Action + " on " + r.Resource + about.String()
}

// Grant is the smallest thing that a policy gives: one action on one resource, of
// a statement with conditions on one of each condition's values.
type Grant struct {
	Sid      string
	Action   string // as written
	Resource string // as written
	If       string // "" without conditions
}

func (g Grant) String() string {
	out := g.Action + " on " + g.Resource
	if g.If != "" {
		out += " if " + g.If
	}
	return out
}

// Decision is what became of a request.
type Decision struct {
	Allowed bool
	// Used are the grants of the first statement that allows it: more than one where
	// the request has several values of a condition key.
	Used []Grant
	// Why is the reason of a denial, in the words that AWS has for it.
	Why string
}

// Decide says whether the role's policies allow the request.
func (r Role) Decide(q Request) Decision {
	for _, s := range r.Policy {
		if s.deny && s.matches(q) {
			return Decision{Why: "with an explicit deny in an identity-based policy"}
		}
	}
	for _, s := range r.Policy {
		if !s.deny && s.matches(q) {
			return Decision{Allowed: true, Used: s.used(q)}
		}
	}
	return Decision{Why: "because no identity-based policy allows the " + q.Action + " action"}
}

func (s Statement) matches(q Request) bool {
	return s.action(q) != "" && s.resource(q) != "" && !slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(q.Context) })
}

// action is the first of the statement's actions that names the request's; AWS
// does not tell capitals apart in them.
func (s Statement) action(q Request) string {
	return first(s.actions, func(a string) bool { return Like(strings.ToLower(a), strings.ToLower(q.Action)) })
}

func (s Statement) resource(q Request) string {
	return first(s.resources, func(arn string) bool { return Like(arn, q.Resource) })
}

func first(all []string, matches func(string) bool) string {
	if i := slices.IndexFunc(all, matches); i >= 0 {
		return all[i]
	}
	return ""
}

func (s Statement) used(q Request) []Grant {
	ifs := []string{""}
	for _, c := range s.conditions {
		ifs = combine(ifs, c.met(q.Context))
	}
	return s.grants(s.action(q), s.resource(q), ifs)
}

func (s Statement) grants(action, resource string, ifs []string) []Grant {
	var out []Grant
	for _, condition := range ifs {
		out = append(out, Grant{Sid: s.Sid, Action: action, Resource: resource, If: condition})
	}
	return out
}

// met writes the parts of the condition that the request's values met.
func (c condition) met(context map[string][]string) []string {
	if c.operator == "Null" {
		return c.each()
	}
	var out []string
	for _, v := range context[c.key] {
		if written, ok := c.naming(v); ok && !slices.Contains(out, c.write(written)) {
			out = append(out, c.write(written))
		}
	}
	return out
}

// each writes the condition once for each of its values.
func (c condition) each() []string {
	var out []string
	for _, v := range c.values {
		out = append(out, c.write(v))
	}
	return out
}

func (c condition) write(value string) string {
	operator := c.operator
	if c.quantifier != "" {
		operator = c.quantifier + ":" + operator
	}
	return c.key + " " + operator + " " + value
}

func combine(ifs, more []string) []string {
	var out []string
	for _, a := range ifs {
		for _, b := range more {
			out = append(out, strings.TrimPrefix(a+" and "+b, " and "))
		}
	}
	return out
}

// Grants lists everything that the policy gives.
func (p Policy) Grants() []Grant {
	var out []Grant
	for _, s := range p {
		if s.deny {
			continue
		}
		ifs := []string{""}
		for _, c := range s.conditions {
			ifs = combine(ifs, c.each())
		}
		for _, action := range s.actions {
			for _, resource := range s.resources {
				out = append(out, s.grants(action, resource, ifs)...)
			}
		}
	}
	return out
}
