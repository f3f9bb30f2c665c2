package dynamo

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// decodeDocument reads the settings of a row into v, a pointer to a struct, and
// returns those that this program does not know: a newer one put them there.
func decodeDocument(text string, v any) (unknown map[string]json.RawMessage, err error) {
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &unknown); err != nil {
		return nil, err
	}
	known := membersOf(reflect.TypeOf(v).Elem())
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool { return known[strings.ToLower(name)] })
	if len(unknown) == 0 {
		return nil, nil
	}
	return unknown, nil
}

// encodeDocument is the settings of a row with those that this program does not
// know: an older program beside a newer one takes nothing from it.
func encodeDocument(v any, unknown map[string]json.RawMessage) (string, error) {
	doc, err := json.Marshal(v)
	if err != nil || len(unknown) == 0 {
		return string(doc), err
	}
	members := maps.Clone(unknown)
	if err := json.Unmarshal(doc, &members); err != nil {
		return "", err
	}
	doc, err = json.Marshal(members)
	return string(doc), err
}

// membersOf returns the names of a struct's members in JSON, in lower case, since
// they are read without it.
func membersOf(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		names[strings.ToLower(name)] = true
	}
	return names
}
