// Package s3 is an in-memory Amazon S3 for objects that are written once and
// read back: CreateBucket, PutObject, GetObject, HeadObject, DeleteObject and
// CopyObject, path style, over the wire protocol of the SDK.
//
// gofakes3 does the storing and most of the protocol. What this package adds is
// what it lacks: encryption headers are answered as they were sent, a put
// replaces the metadata of what it overwrites, CopyObject keeps or replaces
// metadata as it is told, and a checksum that was sent is compared. A put with
// If-None-Match: * is atomic: of many, one succeeds and the others are 412.
//
// Every other operation, query parameter and header that would change the
// outcome is refused with NotImplemented and its name: listing, versions,
// multipart uploads, tags, ACLs, conditional reads, chunked signing. Encryption is
// answered and not done. Nothing survives the process, and nothing expires:
// lifecycle rules belong to the template.
package s3

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Config is what a [Server] is made from. The zero value works.
type Config struct {
	// Region is where buckets may be created, us-east-1 if empty.
	Region string
	// Now is the clock, [time.Now] if nil.
	Now func() time.Time
}

// Server is the service. It is an [http.Handler] and safe for concurrent use.
type Server struct {
	region  string
	now     func() time.Time
	store   *store
	handler http.Handler
}

// New makes a server without buckets.
func New(cfg Config) *Server {
	s := &Server{region: cfg.Region, now: cfg.Now}
	if s.region == "" {
		s.region = "us-east-1"
	}
	if s.now == nil {
		s.now = time.Now
	}
	source := clock{s.now}
	s.store = &store{Backend: s3mem.New(s3mem.WithTimeSource(source))}
	// No signature is checked, so neither is the clock of whoever signed.
	s.handler = gofakes3.New(s.store, gofakes3.WithTimeSource(source), gofakes3.WithTimeSkewLimit(0), gofakes3.WithoutVersioning()).Server()
	return s
}

// clock is the configured clock as gofakes3 wants it: in GMT, for HTTP dates.
type clock struct{ now func() time.Time }

func (c clock) Now() time.Time                  { return c.now().UTC() }
func (c clock) Since(t time.Time) time.Duration { return c.now().Sub(t) }

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := Operation(r)
	if err := check(r, operation); err != nil {
		writeError(w, r, err)
		return
	}
	var err error
	switch operation {
	case "CreateBucket":
		err = s.checkLocation(r)
	case "PutObject":
		err = s.checkPut(w, r)
	case "CopyObject":
		if err = s.copyObject(w, r); err == nil {
			return
		}
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// Operation names the call that a path-style request makes, or is empty when
// this package knows no such call. It looks at method, path and headers alone.
func Operation(r *http.Request) string {
	bucket, key := split(r)
	object := bucket != "" && key != ""
	switch {
	case r.Method == http.MethodPut && bucket != "" && key == "":
		return "CreateBucket"
	case r.Method == http.MethodPut && object && r.Header.Get(copySource) != "":
		return "CopyObject"
	case r.Method == http.MethodPut && object:
		return "PutObject"
	case r.Method == http.MethodGet && object:
		return "GetObject"
	case r.Method == http.MethodHead && object:
		return "HeadObject"
	case r.Method == http.MethodDelete && object:
		return "DeleteObject"
	}
	return ""
}

func split(r *http.Request) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return bucket, key
}

const (
	copySource        = "X-Amz-Copy-Source"
	metadataDirective = "X-Amz-Metadata-Directive"
	sse               = "X-Amz-Server-Side-Encryption"
	sseKey            = "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"
	sseBucketKey      = "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled"
	metaPrefix        = "X-Amz-Meta-"
	checksumPrefix    = "X-Amz-Checksum-"
	checksumMode      = "X-Amz-Checksum-Mode"
	contentSHA256     = "X-Amz-Content-Sha256"
)

// understood are the x-amz headers that are acted on, or that only describe the
// request to a service that checks signatures.
var understood = []string{
	copySource, metadataDirective, sse, sseKey, sseBucketKey, checksumMode, contentSHA256,
	"X-Amz-Date", "X-Amz-Security-Token", "X-Amz-User-Agent", "X-Amz-Sdk-Checksum-Algorithm", "X-Amz-Checksum-Algorithm",
}

// check refuses what would otherwise be ignored.
func check(r *http.Request, operation string) error {
	if operation == "" {
		return notImplemented(fmt.Sprintf("%s of a path of this form", r.Method))
	}
	for name := range r.URL.Query() {
		if name != "x-id" { // the SDK's own note of the operation
			return notImplemented("the query parameter " + name)
		}
	}
	for name := range r.Header {
		conditional := strings.HasPrefix(name, "If-") && !(operation == "PutObject" && name == "If-None-Match")
		unknown := strings.HasPrefix(name, "X-Amz-") && !slices.Contains(understood, name) &&
			!strings.HasPrefix(name, metaPrefix) && !strings.HasPrefix(name, checksumPrefix)
		if conditional || unknown {
			return notImplemented("the header " + name)
		}
	}
	if v := r.Header.Get("If-None-Match"); v != "" && v != "*" {
		return notImplemented("an If-None-Match other than *")
	}
	if strings.HasPrefix(r.Header.Get(contentSHA256), "STREAMING-") {
		return notImplemented("chunked signing")
	}
	return checkEncryption(r.Header)
}

func checkEncryption(h http.Header) error {
	switch kind := h.Get(sse); {
	case kind != "" && kind != "AES256" && kind != "aws:kms":
		return invalidArgument("the encryption must be AES256 or aws:kms")
	case kind != "aws:kms" && (h.Get(sseKey) != "" || h.Get(sseBucketKey) != ""):
		return invalidArgument("a key is for encryption with aws:kms only")
	}
	return nil
}

// echoEncryption answers the encryption that was asked for.
func echoEncryption(w http.ResponseWriter, r *http.Request) {
	for _, name := range []string{sse, sseKey, sseBucketKey} {
		if v := r.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
}

func notImplemented(what string) error {
	return gofakes3.ErrorMessage(gofakes3.ErrNotImplemented, "the local stack does not implement "+what)
}

func invalidArgument(message string) error {
	return gofakes3.ErrorMessage(gofakes3.ErrInvalidArgument, message)
}

// locationBytesMax bounds the body of CreateBucket.
const locationBytesMax = 1024

// checkLocation refuses a bucket in another region than the server's.
func (s *Server) checkLocation(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, locationBytesMax))
	if err != nil {
		return gofakes3.ErrIncompleteBody
	}
	if len(body) == 0 {
		return nil
	}
	var wanted struct {
		XMLName  xml.Name `xml:"CreateBucketConfiguration"`
		Location string   `xml:"LocationConstraint"`
	}
	if err := xml.Unmarshal(body, &wanted); err != nil {
		return gofakes3.ErrMalformedXML
	}
	if wanted.Location != s.region {
		return gofakes3.ErrorMessage(illegalLocation, "the location constraint must be "+s.region)
	}
	return nil
}

// The codes that gofakes3 does not know.
const (
	illegalLocation gofakes3.ErrorCode = "IllegalLocationConstraintException"
	invalidRequest  gofakes3.ErrorCode = "InvalidRequest"
)

// writeError answers as S3 does: XML, or nothing but the status to HEAD.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	code, message := gofakes3.ErrInternal, err.Error()
	if known := gofakes3.Error(nil); errors.As(err, &known) {
		code = known.ErrorCode()
	}
	if known := (*gofakes3.ErrorResponse)(nil); errors.As(err, &known) {
		message = known.Message
	}
	status := code.Status()
	if code == illegalLocation || code == invalidRequest {
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		writeXML(w, struct {
			XMLName xml.Name `xml:"Error"`
			Code    string
			Message string
		}{Code: string(code), Message: message})
	}
}

// writeXML writes a document. It fails only when the client has gone.
func writeXML(w io.Writer, v any) {
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(v)
}
