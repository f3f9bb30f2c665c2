package stack

import (
	"fmt"
	"regexp"
)

// A mark stands for what is known only once a resource exists. It is made of
// characters for private use, which no template contains.
func mark(id, attribute string) string { return "\uE000" + id + "\uE001" + attribute + "\uE002" }

func marks() *regexp.Regexp { return regexp.MustCompile("\uE000([^\uE001]*)\uE001([^\uE002]*)\uE002") }

// waitsFor says that a resource is to be created first.
type waitsFor struct{ id string }

func (e *waitsFor) Error() string { return "waits for " + e.id }

// fill replaces the marks in all texts of a value. A mark of a resource that is
// never created locally stays: whoever uses the text refuses it.
func (c *creation) fill(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return c.fillText(v)
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			filled, err := c.fill(child)
			if err != nil {
				return nil, err
			}
			out[i] = filled
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			filled, err := c.fill(child)
			if err != nil {
				return nil, err
			}
			out[key] = filled
		}
		return out, nil
	}
	return v, nil
}

func (c *creation) fillText(text string) (string, error) {
	var failed error
	filled := c.marks.ReplaceAllStringFunc(text, func(found string) string {
		m := c.marks.FindStringSubmatch(found)
		id, attribute := m[1], m[2]
		resource, made := c.stack.Resources[id]
		if _, coming := c.pending[id]; !made && coming {
			failed = &waitsFor{id}
			return found
		}
		if !made {
			return found
		}
		value, ok := resource.value(attribute)
		if !ok {
			failed = fmt.Errorf("%s of type %s has no attribute %s locally", id, resource.Type, attribute)
		}
		return value
	})
	return filled, failed
}

// unfilled names the resource of a mark that is left in a text.
func unfilled(text string) (string, bool) {
	if m := marks().FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return "", false
}
