// Package secretsmanager is an in-memory AWS Secrets Manager over the wire
// protocol of the SDK (AWS JSON 1.1), exact where keys are rotated: versions
// whose ids are the caller's request tokens, and staging labels that sit on one
// version at a time.
//
// The rules it keeps: AWSCURRENT leaving a version takes AWSPREVIOUS to it;
// custom labels are attached, moved and removed; a version without labels is
// deprecated, hidden from lists and still readable by its id; a repeated token
// with the same value is the same version and with another value is refused;
// a deleted secret can be described but not used until its recovery window ends.
//
// It refuses, by name, every other call and parameter: rotation, replication,
// tags, resource policies, RestoreSecret, UpdateSecret. Values are kept in the
// process's memory as they came; nothing survives the process, and no error or
// answer but GetSecretValue's repeats a value.
//
// Names, limits and rules are those of the service's API model of 2017-10-17 and
// of its quotas page.
package secretsmanager

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"dakghar/internal/devstack/awsjson"
)

// Limits of the service.
const (
	ValueBytesMax   = 65536
	LabelsMax       = 20  // in one call, and over all versions of a secret
	VersionsMax     = 100 // before deprecated versions older than VersionsKept go
	VersionsKept    = 24 * time.Hour
	nameMax         = 512
	labelMax        = 256
	descriptionMax  = 2048
	tokenMin        = 32
	tokenMax        = 64
	recoveryMinDays = 7
	recoveryMaxDays = 30
)

// The labels that the service moves by itself.
const (
	current  = "AWSCURRENT"
	previous = "AWSPREVIOUS"
)

// Config is what a [Server] is made from. The zero value works.
type Config struct {
	// Region and AccountID appear in ARNs: us-east-1 and 000000000000 if empty.
	Region    string
	AccountID string
	// Now is the clock, [time.Now] if nil.
	Now func() time.Time
	// NewID makes request ids and, shortened to six letters and digits, the end of
	// ARNs: random UUIDs if nil.
	NewID func() string
}

func (c Config) withDefaults() Config {
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.AccountID == "" {
		c.AccountID = "000000000000"
	}
	if c.Now == nil {
		c.Now = time.Now
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

	mu      sync.Mutex // guards the secrets and everything in them
	secrets map[string]*secret
}

// New makes a server without secrets.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), secrets: map[string]*secret{}}
	s.service = &awsjson.Service{
		Target:     "secretsmanager",
		Version:    "1.1",
		MessageKey: "Message",
		NewID:      s.cfg.NewID,
		Operations: map[string]awsjson.Operation{
			"CreateSecret":             awsjson.Handle(s.createSecret),
			"PutSecretValue":           awsjson.Handle(s.putSecretValue),
			"GetSecretValue":           awsjson.Handle(s.getSecretValue),
			"DescribeSecret":           awsjson.Handle(s.describeSecret),
			"ListSecretVersionIds":     awsjson.Handle(s.listSecretVersionIDs),
			"UpdateSecretVersionStage": awsjson.Handle(s.updateSecretVersionStage),
			"DeleteSecret":             awsjson.Handle(s.deleteSecret),
		},
	}
	return s
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.service.ServeHTTP(w, r) }

func refuse(code, format string, args ...any) error {
	return &awsjson.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalidParameter(format string, args ...any) error {
	return refuse("InvalidParameterException", format, args...)
}

func invalidRequest(message string) error {
	return &awsjson.Error{Code: "InvalidRequestException", Message: message}
}

func notFound(format string, args ...any) error {
	return refuse("ResourceNotFoundException", format, args...)
}

func exists(format string, args ...any) error {
	return refuse("ResourceExistsException", format, args...)
}

func limitExceeded(format string, args ...any) error {
	return refuse("LimitExceededException", format, args...)
}

var secretName = regexp.MustCompile(`^[A-Za-z0-9/_+=.@-]+$`)

// arn ends in a hyphen and six letters or digits of the id, as the service's do.
func (s *Server) arn(name, id string) string {
	suffix := strings.ReplaceAll(id, "-", "") + "000000"
	return s.arnPrefix() + name + "-" + suffix[:6]
}

func (s *Server) arnPrefix() string {
	return "arn:aws:secretsmanager:" + s.cfg.Region + ":" + s.cfg.AccountID + ":secret:"
}

// arnSuffixLen is the hyphen and the six characters.
const arnSuffixLen = 7

// find locates a secret by name, by ARN, or by ARN without its end. A secret
// whose recovery window is over is gone. The lock is held.
func (s *Server) find(id string) (*secret, error) {
	if id == "" {
		return nil, invalidParameter("SecretId is missing.")
	}
	x, ok := s.secrets[id]
	if name, isARN := strings.CutPrefix(id, s.arnPrefix()); isARN {
		if x, ok = s.secrets[name]; !ok && len(name) > arnSuffixLen {
			x, ok = s.secrets[name[:len(name)-arnSuffixLen]]
			ok = ok && x.arn == id
		}
	}
	if ok && x.isGone(s.cfg.Now()) {
		delete(s.secrets, x.name)
		ok = false
	}
	if !ok {
		return nil, notFound("Secrets Manager can't find the specified secret.")
	}
	return x, nil
}

// use locates a secret that is not being deleted. The lock is held.
func (s *Server) use(id string) (*secret, error) {
	x, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if !x.deletion.IsZero() {
		return nil, invalidRequest("You can't perform this operation on the secret because it was marked for deletion.")
	}
	return x, nil
}
