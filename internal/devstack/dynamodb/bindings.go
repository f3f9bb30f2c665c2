package dynamodb

import (
	"slices"
	"strings"
)

// bindings are the placeholders of one request, shared by all its expressions;
// each must be used by at least one of them.
type bindings struct {
	names      map[string]string
	values     map[string]value
	usedNames  map[string]bool
	usedValues map[string]bool
	reserved   map[string]bool
}

func newBindings(e *expressions, reserved map[string]bool) *bindings {
	return &bindings{
		names:      e.names,
		values:     e.values,
		usedNames:  make(map[string]bool, len(e.names)),
		usedValues: make(map[string]bool, len(e.values)),
		reserved:   reserved,
	}
}

// check refuses placeholders that the service would refuse before it looks at an
// expression: wrongly spelled, empty maps, or given without any expression.
func (e *expressions) check() *apiError {
	if e.names != nil {
		switch {
		case !e.any():
			return invalid("ExpressionAttributeNames can only be specified when using expressions")
		case len(e.names) == 0:
			return invalid("ExpressionAttributeNames must not be empty")
		}
		for key, name := range e.names {
			switch {
			case !isPlaceholder('#', key):
				return invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", key)
			case name == "":
				return invalid("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", key)
			}
		}
	}
	if e.values == nil {
		return nil
	}
	switch {
	case !e.condition.given && !e.update.given && !e.filter.given && !e.keyCondition.given:
		return invalid("ExpressionAttributeValues can only be specified when using expressions")
	case len(e.values) == 0:
		return invalid("ExpressionAttributeValues must not be empty")
	}
	for key := range e.values {
		if !isPlaceholder(':', key) {
			return invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", key)
		}
	}
	return nil
}

// unused refuses what no expression mentioned.
func (b *bindings) unused() *apiError {
	if left := missing(b.names, b.usedNames); left != "" {
		return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", left)
	}
	if left := missing(b.values, b.usedValues); left != "" {
		return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", left)
	}
	return nil
}

func missing[V any](given map[string]V, used map[string]bool) string {
	if len(given) == len(used) {
		return ""
	}
	var left []string
	for key := range given {
		if !used[key] {
			left = append(left, key)
		}
	}
	slices.Sort(left)
	return strings.Join(left, ", ")
}

// source is an expression's text, told apart from an absent one.
type source struct {
	text  string
	given bool
}

// expressions are the expression members that requests share.
type expressions struct {
	condition, update, filter, keyCondition, projection source
	names                                               map[string]string
	values                                              map[string]value
}

func (e *expressions) any() bool {
	return e.condition.given || e.update.given || e.filter.given || e.keyCondition.given || e.projection.given
}

// read takes a member if it is one of these; a call names those it has.
func (e *expressions) read(r *reader, name string) bool {
	switch name {
	case "ConditionExpression":
		e.condition.read(r)
	case "UpdateExpression":
		e.update.read(r)
	case "FilterExpression":
		e.filter.read(r)
	case "KeyConditionExpression":
		e.keyCondition.read(r)
	case "ProjectionExpression":
		e.projection.read(r)
	case "ExpressionAttributeNames":
		e.readNames(r)
	case "ExpressionAttributeValues":
		e.readValues(r)
	default:
		return false
	}
	return true
}

func (s *source) read(r *reader) {
	if !r.absent() {
		*s = source{r.text(), true}
	}
}

func (e *expressions) readNames(r *reader) {
	if r.absent() {
		return
	}
	e.names = map[string]string{}
	r.object(func(key string) { e.names[key] = r.text() })
}

func (e *expressions) readValues(r *reader) {
	if r.absent() {
		return
	}
	e.values = map[string]value{}
	r.object(func(key string) {
		v := r.readValue(1)
		if r.err != nil && r.err.kind == kindValidation && !strings.HasPrefix(r.err.message, "ExpressionAttributeValues") {
			r.err.message = "ExpressionAttributeValues contains invalid value: " + r.err.message + " for key " + key
		}
		e.values[key] = v
	})
}
