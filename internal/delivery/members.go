package delivery

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Members returns a look-up of texts in an event's data by their path: member
// names joined by dots. Texts, whole numbers, true and false are found; what is
// no event has no members.
func Members(event []byte) func(path string) (string, bool) {
	var envelope struct {
		Data any `json:"data"`
	}
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	if err := d.Decode(&envelope); err != nil {
		envelope.Data = nil
	}
	return func(path string) (string, bool) {
		at := envelope.Data
		for name := range strings.SplitSeq(path, ".") {
			object, ok := at.(map[string]any)
			if !ok {
				return "", false
			}
			at = object[name]
		}
		switch v := at.(type) {
		case string:
			return v, true
		case json.Number:
			return v.String(), true
		case bool:
			if v {
				return "true", true
			}
			return "false", true
		}
		return "", false
	}
}
