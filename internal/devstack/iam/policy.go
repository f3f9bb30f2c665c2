package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Policy is a policy document's statements, in their order.
type Policy []Statement

// Statement is one statement of a policy.
type Statement struct {
	Sid        string
	deny       bool
	actions    []string
	resources  []string
	conditions []condition
}

// statement is a statement as it is written.
type statement struct {
	Sid       string
	Effect    string
	Action    oneOrMore
	Resource  oneOrMore
	Condition map[string]map[string]oneOrMore
}

// oneOrMore is one text or a list of them. Truth values count as text, as in
// policies that are written in YAML.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var many []any
	if !bytes.HasPrefix(b, []byte("[")) {
		b = append(append([]byte{'['}, b...), ']')
	}
	if err := json.Unmarshal(b, &many); err != nil {
		return err
	}
	for _, one := range many {
		switch one := one.(type) {
		case string:
			*o = append(*o, one)
		case bool:
			*o = append(*o, fmt.Sprint(one))
		default:
			return fmt.Errorf("want text, not %T", one)
		}
	}
	return nil
}

// Parse reads a policy document in JSON.
func Parse(document []byte) (Policy, error) {
	var raw struct {
		Version   string
		ID        string `json:"Id"`
		Statement []statement
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(&raw); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if raw.Version != "2012-10-17" {
		return nil, fmt.Errorf("policy: version %q is not 2012-10-17", raw.Version)
	}
	var p Policy
	for i, s := range raw.Statement {
		read, err := s.read()
		if err != nil {
			return nil, fmt.Errorf("policy: statement %d (%s): %w", i+1, s.Sid, err)
		}
		p = append(p, read)
	}
	return p, nil
}

func (s statement) read() (Statement, error) {
	switch {
	case s.Effect != "Allow" && s.Effect != "Deny":
		return Statement{}, fmt.Errorf("effect %q is neither Allow nor Deny", s.Effect)
	case len(s.Action) == 0:
		return Statement{}, errors.New("it has no Action")
	case len(s.Resource) == 0:
		return Statement{}, errors.New("it has no Resource")
	}
	out := Statement{Sid: s.Sid, deny: s.Effect == "Deny", actions: s.Action, resources: s.Resource}
	var err error
	out.conditions, err = readConditions(s.Condition)
	return out, err
}
