package guard

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
)

// answer denies a call in its service's own words. SQS answers 403, the other
// services that speak JSON 400, S3 403 in XML.
func answer(w http.ResponseWriter, r *http.Request, message string) {
	target := r.Header.Get(targetHeader)
	if target == "" && !strings.HasPrefix(r.URL.Path, invokePath) {
		answerXML(w, message)
		return
	}
	status := http.StatusBadRequest
	if strings.HasPrefix(target, "AmazonSQS.") || target == "" {
		status = http.StatusForbidden
	}
	body, err := json.Marshal(map[string]string{"__type": "com.amazon.coral.service#AccessDeniedException", "message": message, "Message": message})
	if err != nil {
		panic(fmt.Sprintf("guard: encoding texts: %v", err))
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-ErrorType", "AccessDeniedException")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)) // DynamoDB's clients look for it
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func answerXML(w http.ResponseWriter, message string) {
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: "AccessDenied", Message: message})
	if err != nil {
		panic(fmt.Sprintf("guard: encoding texts: %v", err))
	}
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Del("Content-Length")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(body)
}

// absence turns S3's "not found" into "access denied" for whoever may not list
// the bucket, as S3 does.
// Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
type absence struct {
	http.ResponseWriter
	request *http.Request
	mayKnow func() bool
	hidden  bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *absence) WriteHeader(status int) {
	if status == http.StatusNotFound && !a.mayKnow() {
		a.hidden = true
		answer(a.ResponseWriter, a.request, "Access Denied")
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *absence) Write(b []byte) (int, error) {
	if a.hidden {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] find what is below.
func (a *absence) Unwrap() http.ResponseWriter { return a.ResponseWriter }
