package frontdoor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// answer is a function's response in format 2.0.
type answer struct {
	StatusCode      *int              `json:"statusCode"`
	Headers         map[string]scalar `json:"headers"`
	Cookies         []string          `json:"cookies"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// scalar is a header value: the gateway takes texts, numbers and truth values.
type scalar string

func (s *scalar) UnmarshalJSON(b []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*s = scalar(v)
	case json.Number:
		*s = scalar(v)
	case bool:
		*s = scalar(strconv.FormatBool(v))
	default:
		return errors.New("a header is neither text nor number nor truth value")
	}
	return nil
}

var errMalformed = errors.New("the response is not of payload format 2.0")

// readAnswer reads a function's response. Valid JSON that is no object with a
// statusCode is the body itself, with 200 and application/json, as format 2.0 has it.
func readAnswer(response []byte) (status int, header http.Header, body []byte, err error) {
	if !json.Valid(response) {
		return 0, nil, nil, errMalformed
	}
	var a answer
	if bytes.HasPrefix(bytes.TrimSpace(response), []byte("{")) {
		if err := json.Unmarshal(response, &a); err != nil {
			return 0, nil, nil, errMalformed
		}
	}
	if a.StatusCode == nil {
		return http.StatusOK, http.Header{"Content-Type": {"application/json"}}, inferredBody(response), nil
	}
	if *a.StatusCode < 200 || *a.StatusCode > 599 {
		return 0, nil, nil, errMalformed
	}
	header = http.Header{}
	for name, value := range a.Headers {
		header.Set(name, string(value))
	}
	for _, c := range a.Cookies {
		header.Add("Set-Cookie", c)
	}
	body = []byte(a.Body)
	if a.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(a.Body); err != nil {
			return 0, nil, nil, errMalformed
		}
	}
	if header.Get("Content-Type") == "" && len(body) > 0 {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	return *a.StatusCode, header, body, nil
}

// inferredBody is the response, a JSON text without its quotes.
func inferredBody(response []byte) []byte {
	var text string
	if json.Unmarshal(response, &text) == nil {
		return []byte(text)
	}
	return response
}

func write(w http.ResponseWriter, status int, header http.Header, body []byte) {
	for name, values := range header {
		if name != "Content-Length" && name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; there is nobody else to tell
}

// say answers for the gateway itself.
func say(w http.ResponseWriter, status int, message string) {
	encoded, _ := json.Marshal(map[string]string{"message": message}) // two texts always encode
	write(w, status, http.Header{"Content-Type": {"application/json"}}, encoded)
}

// readBody reads at most limit bytes; over reports a longer body.
func readBody(r *http.Request, limit int64) (body []byte, over bool, err error) {
	if r.ContentLength > limit {
		return nil, true, nil
	}
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
		return body, false, err
	}
	body, err = io.ReadAll(io.LimitReader(r.Body, limit+1))
	return body, int64(len(body)) > limit, err
}
