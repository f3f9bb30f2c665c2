package provider

import (
	"bytes"
	"mime"
	"net/url"
)

const formType = "application/x-www-form-urlencoded"

// document returns the JSON of a raw body. What the body is, its own signed
// bytes say: JSON never begins with a field's name.
func (a *Adapter) document(body []byte) (doc []byte, form bool, err error) {
	if a.FormField == "" || !bytes.HasPrefix(body, []byte(a.FormField+"=")) {
		return body, false, nil
	}
	doc, err = formValue(body[len(a.FormField)+1:])
	return doc, true, err
}

// formValue decodes the one field's value. A second field, of whatever name,
// is refused: there would be two payloads, and two readers may differ.
func formValue(encoded []byte) ([]byte, error) {
	if len(encoded) == 0 || bytes.ContainsAny(encoded, "&;=") {
		return nil, bad(CodeMalformed)
	}
	decoded, err := url.QueryUnescape(string(encoded))
	if err != nil {
		return nil, bad(CodeMalformed)
	}
	return []byte(decoded), nil
}

// agrees reports whether an unsigned Content-Type, if there is one, says the same.
func agrees(contentType string, form bool) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == formType) == form
}
