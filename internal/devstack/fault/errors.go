package fault

import (
	"encoding/json"
	"encoding/xml"
	"hash/crc32"
	"net/http"
	"strconv"
)

// failure is an error as a service would answer it.
type failure struct {
	status int
	code   string
}

// The services' own words, from their API models.
var (
	throttling = map[string]failure{
		"":                {http.StatusBadRequest, "ThrottlingException"},
		"dynamodb":        {http.StatusBadRequest, "ProvisionedThroughputExceededException"},
		"dynamodbstreams": {http.StatusBadRequest, "LimitExceededException"},
		"sqs":             {http.StatusBadRequest, "RequestThrottled"},
		"secretsmanager":  {http.StatusBadRequest, "ThrottlingException"},
		"kms":             {http.StatusBadRequest, "ThrottlingException"},
		"s3":              {http.StatusServiceUnavailable, "SlowDown"},
	}
	internal = map[string]failure{
		"":                {http.StatusInternalServerError, "InternalFailure"},
		"dynamodb":        {http.StatusInternalServerError, "InternalServerError"},
		"dynamodbstreams": {http.StatusInternalServerError, "InternalServerError"},
		"sqs":             {http.StatusInternalServerError, "InternalError"},
		"secretsmanager":  {http.StatusInternalServerError, "InternalServiceError"},
		"kms":             {http.StatusInternalServerError, "KMSInternalException"},
		"s3":              {http.StatusInternalServerError, "InternalError"},
	}
)

// failure is what Fail answers.
func (f Fault) failure(service string) failure {
	e := internal[service]
	if f.Code != "" {
		e.code = f.Code
	}
	if f.HTTPStatus != 0 {
		e.status = f.HTTPStatus
	}
	return e
}

const message = "injected by the local stack"

func writeError(w http.ResponseWriter, r *http.Request, service string, e failure) {
	if service == "s3" {
		writeXML(w, r, e)
		return
	}
	// Marshalling strings cannot fail. Both spellings: services differ in it.
	body, _ := json.Marshal(map[string]string{"__type": e.code, "message": message, "Message": message})
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", "injected")
	// The DynamoDB client compares it, and complains of an answer without.
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	if service == "sqs" {
		h.Set("X-Amzn-Query-Error", e.code+";"+sender(e.status))
	}
	w.WriteHeader(e.status)
	_, _ = w.Write(body) // fails only when the client has gone
}

// sender says whose fault an error is, as SQS does.
func sender(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

func writeXML(w http.ResponseWriter, r *http.Request, e failure) {
	body, _ := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: e.code, Message: message})
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(e.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append([]byte(xml.Header), body...))
	}
}
