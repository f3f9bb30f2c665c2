// Package kms is an in-memory AWS Key Management Service for envelope
// encryption: CreateKey, DescribeKey, GenerateDataKey and Decrypt of symmetric
// keys over the wire protocol of the SDK (AWS JSON 1.1).
//
// A data key is wrapped with AES-256-GCM under a key that never leaves the
// process; the encryption context is the additional data, in the order of its
// names. So a context that is wrong, incomplete or missing fails to decrypt, as
// it does in the service. A key can be switched off from Go, with
// [Server.SetEnabled], to act out an outage.
//
// It refuses, by name, every other call and parameter: aliases, grants, key
// policies, rotation, asymmetric keys. Keys do not survive the process, and what
// it wraps can be unwrapped by it alone.
//
// Names, limits and states are those of the service's API model of 2014-11-01.
package kms

import (
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"dakghar/internal/devstack/awsjson"
)

// Limits of the service.
const (
	DataKeyBytesMax    = 1024
	CiphertextBytesMax = 6144
)

// Config is what a [Server] is made from. The zero value works.
type Config struct {
	// Region and AccountID appear in ARNs: us-east-1 and 000000000000 if empty.
	Region    string
	AccountID string
	// Now is the clock, [time.Now] if nil.
	Now func() time.Time
	// NewID makes key and request ids: random UUIDs if nil.
	NewID func() string
	// Random is where keys and nonces come from: the system's source if nil. It
	// must be safe for concurrent use when the server is used so.
	Random io.Reader
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
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c
}

// Server is the service. It is an [http.Handler] and safe for concurrent use.
type Server struct {
	cfg     Config
	service *awsjson.Service

	mu   sync.Mutex // guards keys and their states
	keys map[string]*key
}

// key is one symmetric key.
type key struct {
	id          string
	arn         string
	description string
	created     time.Time
	enabled     bool
	aead        cipher.AEAD
}

// New makes a server without keys.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), keys: map[string]*key{}}
	s.service = &awsjson.Service{
		Target:  "TrentService",
		Version: "1.1",
		NewID:   s.cfg.NewID,
		Operations: map[string]awsjson.Operation{
			"CreateKey":       awsjson.Handle(s.createKey),
			"DescribeKey":     awsjson.Handle(s.describeKey),
			"GenerateDataKey": awsjson.Handle(s.generateDataKey),
			"Decrypt":         awsjson.Handle(s.decrypt),
		},
	}
	return s
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.service.ServeHTTP(w, r) }

// SetEnabled switches a key on or off by its id or ARN. While it is off,
// GenerateDataKey and Decrypt answer DisabledException. It reports whether there
// is such a key.
func (s *Server) SetEnabled(keyID string, enabled bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.keys[s.bare(keyID)]
	if ok {
		k.enabled = enabled
	}
	return ok
}

// bare returns the id in a key ARN of this server, or the id itself.
func (s *Server) bare(keyID string) string { return strings.TrimPrefix(keyID, s.arn("")) }

func (s *Server) arn(id string) string {
	return "arn:aws:kms:" + s.cfg.Region + ":" + s.cfg.AccountID + ":key/" + id
}

// find locates a key. The lock is held.
func (s *Server) find(keyID string) (*key, error) {
	if keyID == "" {
		return nil, validation("KeyId is missing")
	}
	if strings.HasPrefix(keyID, "alias/") || strings.Contains(keyID, ":alias/") {
		return nil, refuse("NotFoundException", "the local stack has no aliases")
	}
	k, ok := s.keys[s.bare(keyID)]
	if !ok {
		return nil, refuse("NotFoundException", "there is no key with this id or ARN")
	}
	return k, nil
}

// use locates a key that may be used. The lock is held.
func (s *Server) use(keyID string) (*key, error) {
	k, err := s.find(keyID)
	if err != nil {
		return nil, err
	}
	if !k.enabled {
		return nil, refuse("DisabledException", "%s is disabled.", k.arn)
	}
	return k, nil
}

func refuse(code, format string, args ...any) error {
	return &awsjson.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func validation(format string, args ...any) error {
	return refuse("ValidationException", format, args...)
}

type createKeyInput struct {
	Description string
	KeyUsage    string
	KeySpec     string
	Origin      string
}

type keyOutput struct {
	KeyMetadata metadata
}

type metadata struct {
	AWSAccountID          string       `json:"AWSAccountId"`
	KeyID                 string       `json:"KeyId"`
	ARN                   string       `json:"Arn"`
	CreationDate          awsjson.Time `json:"CreationDate"`
	Enabled               bool
	Description           string
	KeyUsage              string
	KeyState              string
	Origin                string
	KeyManager            string
	CustomerMasterKeySpec string
	KeySpec               string
	EncryptionAlgorithms  []string
	MultiRegion           bool
}

// The only kind of key there is.
const (
	usage     = "ENCRYPT_DECRYPT"
	spec      = "SYMMETRIC_DEFAULT"
	origin    = "AWS_KMS"
	algorithm = "SYMMETRIC_DEFAULT"
)

func (s *Server) createKey(_ *http.Request, in createKeyInput) (keyOutput, error) {
	for _, choice := range [][3]string{{"KeyUsage", in.KeyUsage, usage}, {"KeySpec", in.KeySpec, spec}, {"Origin", in.Origin, origin}} {
		if choice[1] != "" && choice[1] != choice[2] {
			return keyOutput{}, refuse("UnsupportedOperationException", "the local stack has no keys but those with %s %s", choice[0], choice[2])
		}
	}
	var secret [32]byte
	if _, err := io.ReadFull(s.cfg.Random, secret[:]); err != nil {
		return keyOutput{}, fmt.Errorf("make a key: %w", err)
	}
	aead, err := newAEAD(secret[:])
	if err != nil {
		return keyOutput{}, err
	}
	k := &key{id: s.cfg.NewID(), description: in.Description, created: s.cfg.Now(), enabled: true, aead: aead}
	k.arn = s.arn(k.id)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.id] = k
	return keyOutput{KeyMetadata: s.describe(k)}, nil
}

func (s *Server) describe(k *key) metadata {
	state := "Enabled"
	if !k.enabled {
		state = "Disabled"
	}
	return metadata{
		AWSAccountID: s.cfg.AccountID, KeyID: k.id, ARN: k.arn, CreationDate: awsjson.Time(k.created),
		Enabled: k.enabled, Description: k.description, KeyUsage: usage, KeyState: state, Origin: origin,
		KeyManager: "CUSTOMER", CustomerMasterKeySpec: spec, KeySpec: spec, EncryptionAlgorithms: []string{algorithm},
	}
}

type describeKeyInput struct {
	KeyID string `json:"KeyId"`
}

func (s *Server) describeKey(_ *http.Request, in describeKeyInput) (keyOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(in.KeyID)
	if err != nil {
		return keyOutput{}, err
	}
	return keyOutput{KeyMetadata: s.describe(k)}, nil
}

type generateDataKeyInput struct {
	KeyID             string `json:"KeyId"`
	KeySpec           string
	NumberOfBytes     *int
	EncryptionContext map[string]string
}

type generateDataKeyOutput struct {
	CiphertextBlob []byte
	Plaintext      []byte
	KeyID          string `json:"KeyId"`
}

func (s *Server) generateDataKey(_ *http.Request, in generateDataKeyInput) (generateDataKeyOutput, error) {
	size, err := in.size()
	if err != nil {
		return generateDataKeyOutput{}, err
	}
	s.mu.Lock()
	k, err := s.use(in.KeyID)
	s.mu.Unlock()
	if err != nil {
		return generateDataKeyOutput{}, err
	}
	plain := make([]byte, size)
	if _, err := io.ReadFull(s.cfg.Random, plain); err != nil {
		return generateDataKeyOutput{}, fmt.Errorf("make a data key: %w", err)
	}
	blob, err := k.wrap(plain, in.EncryptionContext, s.cfg.Random)
	return generateDataKeyOutput{CiphertextBlob: blob, Plaintext: plain, KeyID: k.arn}, err
}

func (in generateDataKeyInput) size() (int, error) {
	switch {
	case (in.KeySpec == "") == (in.NumberOfBytes == nil):
		return 0, validation("either KeySpec or NumberOfBytes must be given, and not both")
	case in.KeySpec == "AES_256":
		return 32, nil
	case in.KeySpec == "AES_128":
		return 16, nil
	case in.KeySpec != "":
		return 0, validation("KeySpec must be AES_256 or AES_128")
	case *in.NumberOfBytes < 1 || *in.NumberOfBytes > DataKeyBytesMax:
		return 0, validation("NumberOfBytes must be 1 to %d", DataKeyBytesMax)
	}
	return *in.NumberOfBytes, nil
}

type decryptInput struct {
	CiphertextBlob      []byte
	EncryptionContext   map[string]string
	KeyID               string `json:"KeyId"`
	EncryptionAlgorithm string
}

type decryptOutput struct {
	KeyID               string `json:"KeyId"`
	Plaintext           []byte
	EncryptionAlgorithm string
}

func (s *Server) decrypt(_ *http.Request, in decryptInput) (decryptOutput, error) {
	if in.EncryptionAlgorithm != "" && in.EncryptionAlgorithm != algorithm {
		return decryptOutput{}, refuse("InvalidKeyUsageException", "the local stack decrypts with %s only", algorithm)
	}
	if n := len(in.CiphertextBlob); n < 1 || n > CiphertextBytesMax {
		return decryptOutput{}, validation("CiphertextBlob must be 1 to %d bytes", CiphertextBytesMax)
	}
	k, sealed, err := s.keyFor(in)
	if err != nil {
		return decryptOutput{}, err
	}
	plain, err := k.unwrap(sealed, in.EncryptionContext)
	return decryptOutput{KeyID: k.arn, Plaintext: plain, EncryptionAlgorithm: algorithm}, err
}

// keyFor finds the key that a blob names, and checks that it is the one asked for.
func (s *Server) keyFor(in decryptInput) (*key, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, sealed, ok := split(in.CiphertextBlob)
	k, known := s.keys[id]
	if !ok || !known {
		return nil, nil, invalidCiphertext()
	}
	if in.KeyID != "" {
		asked, err := s.find(in.KeyID)
		if err != nil {
			return nil, nil, err
		}
		if asked != k {
			return nil, nil, refuse("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
		}
	}
	k, err := s.use(id)
	return k, sealed, err
}
