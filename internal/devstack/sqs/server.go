// Package sqs is an in-memory Amazon SQS: standard queues over the wire protocol
// of the SDK (AWS JSON 1.0), with the semantics that a consumer must survive.
//
// It keeps what matters: delays, visibility timeouts with receive counts, long
// polls that wake as soon as there is something to take, redrive to a
// dead-letter queue, retention counted from the first send, the in-flight limit,
// errors per batch entry, and message move tasks. Where the service promises
// nothing (order, a message delivered once) this package promises nothing either,
// although one process happens to deliver in order.
//
// It refuses, by name, what it does not do: FIFO queues, queue policies,
// customer keys, tags, DeleteQueue and every other call or parameter that is not
// implemented. MessageGroupId is accepted and returned, but does not make the
// queue fair. Nothing survives the process.
//
// Names, limits and defaults are those of the service's API model of 2012-11-05
// and of the Amazon SQS Developer Guide, as published in 2026.
package sqs

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"dakghar/internal/devstack/awsjson"
)

// InFlightMax is how many messages of one standard queue may be received and not
// yet deleted, unless [Config.InFlightMax] says otherwise.
const InFlightMax = 120_000

// Config is what a [Server] is made from. The zero value works.
type Config struct {
	// Region and AccountID appear in ARNs and URLs: us-east-1 and 000000000000 if empty.
	Region    string
	AccountID string
	// BaseURL is the scheme and host that queue URLs start with, such as
	// http://127.0.0.1:8081. Empty: the host that the request was sent to.
	BaseURL string
	// InFlightMax replaces the limit of the same name when above zero.
	InFlightMax int
	// Now is the clock, [time.Now] if nil.
	Now func() time.Time
	// Timer fires once after d on the same clock; stop releases it. Real timers if nil.
	Timer func(d time.Duration) (fired <-chan time.Time, stop func())
	// NewID makes message, task and request ids: random UUIDs if nil.
	NewID func() string
}

func (c Config) withDefaults() Config {
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.AccountID == "" {
		c.AccountID = "000000000000"
	}
	if c.InFlightMax <= 0 {
		c.InFlightMax = InFlightMax
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Timer == nil {
		c.Timer = func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTimer(d)
			return t.C, func() { t.Stop() }
		}
	}
	if c.NewID == nil {
		c.NewID = awsjson.RandomUUID
	}
	return c
}

// Server is the service. It is an [http.Handler] and safe for concurrent use.
type Server struct {
	cfg     Config
	service *awsjson.Service
	closing context.Context
	close   context.CancelFunc
	moving  sync.WaitGroup

	mu     sync.Mutex // guards everything below, and every queue and message
	queues map[string]*queue
	sends  uint64 // counts messages, to order those of one instant
}

// New makes a server without queues. Call [Server.Close] to stop its move tasks.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), queues: map[string]*queue{}}
	s.closing, s.close = context.WithCancel(context.Background())
	s.service = &awsjson.Service{
		Target:  "AmazonSQS",
		Version: "1.0",
		NewID:   s.cfg.NewID,
		Operations: map[string]awsjson.Operation{
			"CreateQueue":                  awsjson.Handle(s.createQueue),
			"GetQueueUrl":                  awsjson.Handle(s.getQueueURL),
			"ListQueues":                   awsjson.Handle(s.listQueues),
			"GetQueueAttributes":           awsjson.Handle(s.getQueueAttributes),
			"SetQueueAttributes":           awsjson.HandleEmpty(s.setQueueAttributes),
			"PurgeQueue":                   awsjson.HandleEmpty(s.purgeQueue),
			"SendMessage":                  awsjson.Handle(s.sendMessage),
			"SendMessageBatch":             awsjson.Handle(s.sendMessageBatch),
			"ReceiveMessage":               awsjson.Handle(s.receiveMessage),
			"DeleteMessage":                awsjson.HandleEmpty(s.deleteMessage),
			"DeleteMessageBatch":           awsjson.Handle(s.deleteMessageBatch),
			"ChangeMessageVisibility":      awsjson.HandleEmpty(s.changeMessageVisibility),
			"ChangeMessageVisibilityBatch": awsjson.Handle(s.changeMessageVisibilityBatch),
			"ListDeadLetterSourceQueues":   awsjson.Handle(s.listDeadLetterSourceQueues),
			"StartMessageMoveTask":         awsjson.Handle(s.startMessageMoveTask),
			"ListMessageMoveTasks":         awsjson.Handle(s.listMessageMoveTasks),
		},
	}
	return s
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.service.ServeHTTP(w, r) }

// Close stops the running move tasks and waits for them. Messages stay where
// they are, and calls are still answered.
func (s *Server) Close() {
	s.close()
	s.moving.Wait()
}

// Changed returns a channel that is closed when the named queue may hold
// something new to receive: a message arrived, came back, or room was made for
// one. A message whose delay or visibility timeout merely runs out closes
// nothing; ReceiveMessage with WaitTimeSeconds waits for both. ok is false when
// there is no such queue.
func (s *Server) Changed(name string) (changed <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[name]
	if !ok {
		return nil, false
	}
	return q.changed, true
}

// find locates a queue by its URL, of which only the last part counts, so that a
// client may reach the server under any host name. The lock is held.
func (s *Server) find(url string) (*queue, error) {
	if url == "" {
		return nil, missingParameter("QueueUrl")
	}
	q, ok := s.queues[url[strings.LastIndexByte(url, '/')+1:]]
	if !ok {
		return nil, queueDoesNotExist()
	}
	return q, nil
}

// findARN locates a queue by its ARN. The lock is held.
func (s *Server) findARN(arn string) (*queue, bool) {
	name, ok := strings.CutPrefix(arn, s.arn(""))
	if !ok {
		return nil, false
	}
	q, ok := s.queues[name]
	return q, ok
}

func (s *Server) arn(name string) string {
	return "arn:aws:sqs:" + s.cfg.Region + ":" + s.cfg.AccountID + ":" + name
}

func (s *Server) url(r *http.Request, name string) string {
	base := strings.TrimSuffix(s.cfg.BaseURL, "/")
	if base == "" {
		base = "http://" + r.Host
	}
	return base + "/" + s.cfg.AccountID + "/" + name
}
