package provider

import (
	"net/url"
	"testing"
)

func TestFormsOfOneField(t *testing.T) {
	t.Parallel()
	a := &Adapter{FormField: "payload"}
	for _, tt := range []struct {
		name, body, want string
		form             bool
		code             string
	}{
		{"JSON is no form", `{"a":1}`, `{"a":1}`, false, ""},
		{"one field", `payload=%7B%22a%22%3A1%7D`, `{"a":1}`, true, ""},
		{"plus is a space", `payload=%7B%22a%22%3A+1%7D`, `{"a": 1}`, true, ""},
		{"an encoded ampersand is text", `payload=a%26payload%3Db`, `a&payload=b`, true, ""},
		{"two fields of the name", `payload=a&payload=b`, "", true, CodeMalformed},
		{"another field after it", `payload=a&x=b`, "", true, CodeMalformed},
		{"another field before it makes it no form of ours", `x=b&payload=a`, `x=b&payload=a`, false, ""},
		{"a semicolon, which some readers take for a separator", `payload=a;payload=b`, "", true, CodeMalformed},
		{"an empty field", `payload=`, "", true, CodeMalformed},
		{"a broken escape", `payload=%7`, "", true, CodeMalformed},
		{"an escape that is none", `payload=%zz`, "", true, CodeMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, form, err := a.document([]byte(tt.body))
			if string(got) != tt.want || form != tt.form || codeOf(err) != tt.code {
				t.Errorf("got %q, %t, %v", got, form, err)
			}
		})
	}
}

// FuzzForm holds that what is accepted is one field for every other reader too.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{"payload=%7B%7D", "payload=a&payload=b", "payload=+%26", "payload=%", "payload="} {
		f.Add(seed)
	}
	a := &Adapter{FormField: "payload"}
	f.Fuzz(func(t *testing.T, body string) {
		got, form, err := a.document([]byte(body))
		if !form || err != nil {
			return
		}
		fields, err := url.ParseQuery(body)
		if err != nil || len(fields) != 1 || len(fields["payload"]) != 1 || fields["payload"][0] != string(got) {
			t.Errorf("we read %q, another reader %v, %v", got, fields, err)
		}
	})
}
