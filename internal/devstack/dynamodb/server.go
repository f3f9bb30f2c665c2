package dynamodb

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a server needs from outside. The zero value is usable.
type Config struct {
	// Now is the clock of time to live, tokens, streams and creation times;
	// nil means time.Now.
	Now func() time.Time
	// Region and Account appear in ARNs; empty means us-east-1 and 000000000000.
	Region, Account string
}

// Server is the store and its HTTP front. It is safe for concurrent use.
type Server struct {
	now             func() time.Time
	region, account string
	reserved        map[string]bool
	calls           map[string]call
	usage           usage
	requests        atomic.Uint64
	buffers         sync.Pool

	mu       sync.RWMutex // guards everything below
	tables   map[string]*table
	streams  map[string]*stream // by ARN; those of deleted tables too
	sequence uint64             // last stream sequence number, over all tables
	created  uint64             // tables ever created, for their ids
	tokens   tokens
	changed  map[string]chan struct{} // by table, made when somebody waits
}

// call is one operation: it decodes the request, answers into w, or fails.
type call func(s *Server, r *reader, w *writer) *apiError

// New returns an empty store.
func New(c Config) *Server {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Account == "" {
		c.Account = "000000000000"
	}
	return &Server{
		now:      c.Now,
		region:   c.Region,
		account:  c.Account,
		reserved: newReserved(),
		calls:    newCalls(),
		usage:    usage{tables: map[string]Units{}},
		buffers:  sync.Pool{New: func() any { return new(writer) }},
		tables:   map[string]*table{},
		streams:  map[string]*stream{},
		tokens:   newTokens(),
		changed:  map[string]chan struct{}{},
	}
}

const (
	targetTables  = "DynamoDB_20120810."
	targetStreams = "DynamoDBStreams_20120810."
)

func newCalls() map[string]call {
	return map[string]call{
		targetTables + "BatchGetItem":       (*Server).batchGetItem,
		targetTables + "BatchWriteItem":     (*Server).batchWriteItem,
		targetTables + "CreateTable":        (*Server).createTable,
		targetTables + "DeleteItem":         (*Server).deleteItem,
		targetTables + "DeleteTable":        (*Server).deleteTable,
		targetTables + "DescribeTable":      (*Server).describeTable,
		targetTables + "DescribeTimeToLive": (*Server).describeTimeToLive,
		targetTables + "GetItem":            (*Server).getItem,
		targetTables + "ListTables":         (*Server).listTables,
		targetTables + "PutItem":            (*Server).putItem,
		targetTables + "Query":              (*Server).query,
		targetTables + "Scan":               (*Server).scan,
		targetTables + "TransactWriteItems": (*Server).transactWriteItems,
		targetTables + "UpdateItem":         (*Server).updateItem,
		targetTables + "UpdateTimeToLive":   (*Server).updateTimeToLive,
		targetStreams + "DescribeStream":    (*Server).describeStream,
		targetStreams + "GetRecords":        (*Server).getRecords,
		targetStreams + "GetShardIterator":  (*Server).getShardIterator,
		targetStreams + "ListStreams":       (*Server).listStreams,
	}
}

// Operations lists the calls the server speaks, as X-Amz-Target values, sorted.
func Operations() []string {
	return sortedKeys(newCalls())
}

// requestBytesMax is above the service's 16 MiB for a batch, base64 and JSON
// around it included.
const requestBytesMax = 32 << 20

// ServeHTTP answers one call, chosen by the X-Amz-Target header. Every answer,
// errors included, carries X-Amz-Crc32 and Content-Length, which the SDK checks.
func (s *Server) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	w := s.buffers.Get().(*writer)
	w.b = w.b[:0]
	status := http.StatusOK
	if err := s.serve(req, w); err != nil {
		w.b = err.write(w.b[:0])
		status = err.status
	}
	header := rw.Header()
	header.Set("Content-Type", "application/x-amz-json-1.0")
	header.Set("Content-Length", strconv.Itoa(len(w.b)))
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(w.b)), 10))
	header.Set("X-Amzn-Requestid", fmt.Sprintf("%016X", s.requests.Add(1)))
	rw.WriteHeader(status)
	// A client that has gone away gets no answer; there is nobody to tell.
	_, _ = rw.Write(w.b)
	s.recycle(w)
}

// recycle keeps ordinary buffers and lets go of those a large page has grown.
func (s *Server) recycle(w *writer) {
	const keep = 64 << 10
	if cap(w.b) <= keep {
		s.buffers.Put(w)
	}
}

func (s *Server) serve(req *http.Request, w *writer) *apiError {
	if req.Method != http.MethodPost {
		return failure(kindUnknown, "a call is a POST, this is a %s", req.Method)
	}
	target := req.Header.Get("X-Amz-Target")
	run, ok := s.calls[target]
	if !ok {
		return failure(kindUnknown, "the local DynamoDB does not speak %q; it speaks %s", target, strings.Join(sortedKeys(s.calls), ", "))
	}
	body, err := readBody(req)
	if err != nil {
		return err
	}
	return run(s, &reader{data: body}, w)
}

func readBody(req *http.Request) ([]byte, *apiError) {
	if req.ContentLength > requestBytesMax {
		return nil, failure(kindSerialization, "the request is larger than %d bytes", requestBytesMax)
	}
	body := make([]byte, 0, max(512, req.ContentLength+1))
	limited := io.LimitReader(req.Body, requestBytesMax+1)
	for {
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			if len(body) > requestBytesMax {
				return nil, failure(kindSerialization, "the request is larger than %d bytes", requestBytesMax)
			}
			return body, nil
		case err != nil:
			return nil, failure(kindSerialization, "the request could not be read: %v", err)
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}

// write encodes the error as the service does: the SDK finds the typed exception
// by the shape's name behind the '#'.
func (e *apiError) write(b []byte) []byte {
	w := &writer{b: b}
	w.open('{')
	namespace := "com.amazonaws.dynamodb.v20120810#"
	if e.kind == kindValidation || e.kind == kindSerialization || e.kind == kindUnknown {
		namespace = "com.amazon.coral.validate#"
	}
	w.textMember("__type", namespace+e.kind)
	if e.reasons != nil {
		w.name("CancellationReasons")
		writeAll(w, e.reasons, w.reason)
		w.textMember("Message", e.message)
	} else {
		w.textMember("message", e.message)
	}
	if e.item != nil {
		w.name("Item")
		w.item(e.item)
	}
	w.close('}')
	return w.b
}

func (w *writer) reason(r reason) {
	w.open('{')
	w.textMember("Code", r.code)
	if r.message != "" {
		w.textMember("Message", r.message)
	}
	if r.item != nil {
		w.name("Item")
		w.item(r.item)
	}
	w.close('}')
}

// Changed returns a channel that is closed when the table's stream next gets a
// record. Take it before reading the stream, and wait on it only if the read
// found nothing: then no record is missed. A table that does not exist, or has no
// stream, may be named; the channel waits for the first record under that name.
func (s *Server) Changed(tableName string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed[tableName] == nil {
		s.changed[tableName] = make(chan struct{})
	}
	return s.changed[tableName]
}

// record appends a change to the table's stream, if it has one. The caller holds
// the lock under which the rows changed.
func (s *Server) record(t *table, before, after *record, expired bool) {
	if t.stream == nil {
		return
	}
	c := change{at: s.now(), expired: expired}
	if before != nil {
		c.before = before.item
	}
	if after != nil {
		c.after = after.item
	}
	s.sequence++
	c.sequence = s.sequence
	t.stream.append(c)
	if waiting := s.changed[t.name]; waiting != nil {
		close(waiting)
		delete(s.changed, t.name)
	}
}

func (s *Server) table(name string) (*table, *apiError) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	t := s.tables[name]
	if t == nil {
		return nil, failure(kindNotFound, messageNoTable+": Table: %s not found", name)
	}
	return t, nil
}

// checkName applies the rule for table and index names.
func checkName(name string) *apiError {
	ok := len(name) >= 3 && len(name) <= 255
	for i := range len(name) {
		ok = ok && (isPart(name[i]) || name[i] == '-' || name[i] == '.')
	}
	if !ok {
		return invalid("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	return nil
}
