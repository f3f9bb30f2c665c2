package secret

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
	// labelPrefix begins the label that keeps a version alive.
	labelPrefix = "dk-"
)

// What Secrets Manager asks of a client request token, which becomes the version id.
const (
	TokenBytesMin = 32 // the shortest token
	TokenBytesMax = 64 // the longest token
)

// Client is the part of Secrets Manager that an operator's commands need.
type Client interface {
	Getter
	CreateSecret(context.Context, *secretsmanager.CreateSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.CreateSecretOutput, error)
	PutSecretValue(context.Context, *secretsmanager.PutSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.PutSecretValueOutput, error)
	DescribeSecret(context.Context, *secretsmanager.DescribeSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.DescribeSecretOutput, error)
	UpdateSecretVersionStage(context.Context, *secretsmanager.UpdateSecretVersionStageInput, ...func(*secretsmanager.Options)) (*secretsmanager.UpdateSecretVersionStageOutput, error)
}

// Store writes secrets for the operator. Each of its calls may be repeated
// with the same arguments and then changes nothing more: a command that died
// half-way is finished by running it again.
//
// Each key's version carries a label of its own, dk-<version id>, beside the
// AWS stages: a version without any label is deprecated and may be deleted by
// Secrets Manager at any time. The label holds the whole version id, because a
// label sits on one version at a time and two versions that shared it would
// take it from each other.
type Store struct {
	client Client
	keyID  string
}

// NewStore returns a store. keyID names the KMS key for new secrets; empty for
// the account's own aws/secretsmanager.
func NewStore(client Client, keyID string) *Store { return &Store{client: client, keyID: keyID} }

// Create makes the endpoint's secret with its first version, whose id is token.
// [ErrOtherSecret] means that the name exists without this very version.
func (s *Store) Create(ctx context.Context, e webhook.Endpoint, value Value, token string) (webhook.KeyVersion, error) {
	if err := checkWrite(value, token); err != nil {
		return "", err
	}
	in := &secretsmanager.CreateSecretInput{Name: aws.String(e.Secret), ClientRequestToken: aws.String(token)}
	in.SecretString, in.SecretBinary = split(value)
	if s.keyID != "" {
		in.KmsKeyId = aws.String(s.keyID)
	}
	_, err := s.client.CreateSecret(ctx, in)
	if _, exists := errors.AsType[*types.ResourceExistsException](err); exists {
		if err = s.confirm(ctx, e, value, token); errors.Is(err, ErrNoVersion) {
			err = ErrOtherSecret
		}
		if err != nil {
			return "", err
		}
	} else if err != nil {
		return "", storeFault("CreateSecret", err)
	}
	return webhook.KeyVersion(token), s.label(ctx, e, webhook.KeyVersion(token))
}

// Put adds a version with id token to the endpoint's secret, and makes it the
// store's current one. [ErrOtherSecret] means that the token was used for
// another value. A version that exists with this value is only labelled: a
// repeat never takes AWSCURRENT back from a later key.
func (s *Store) Put(ctx context.Context, e webhook.Endpoint, value Value, token string) (webhook.KeyVersion, error) {
	if err := checkWrite(value, token); err != nil {
		return "", err
	}
	version := webhook.KeyVersion(token)
	err := s.confirm(ctx, e, value, token)
	switch {
	case err == nil:
		return version, s.label(ctx, e, version)
	case !errors.Is(err, ErrNoVersion):
		return "", err
	}
	in := &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(e.Secret), ClientRequestToken: aws.String(token),
		VersionStages: []string{stageCurrent, labelOf(version)},
	}
	in.SecretString, in.SecretBinary = split(value)
	if _, err := s.client.PutSecretValue(ctx, in); err != nil {
		return "", writeFault("PutSecretValue", err)
	}
	return version, nil
}

// Retire takes our label from a version, so that Secrets Manager may forget it
// once no AWS stage holds it. It does not end trust: the registry row does.
func (s *Store) Retire(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) error {
	d, err := s.Describe(ctx, e)
	if err != nil {
		return err
	}
	if at := d.find(v); at < 0 || !d.Versions[at].Kept {
		return nil
	}
	_, err = s.client.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: aws.String(e.Secret), VersionStage: aws.String(labelOf(v)), RemoveFromVersionId: aws.String(string(v)),
	})
	if err != nil {
		return writeFault("UpdateSecretVersionStage", err)
	}
	return nil
}

// Description is what the store knows of an endpoint's secret, without values.
type Description struct {
	// DeletedAt is when the secret was marked for deletion; zero if it was not.
	DeletedAt time.Time
	// Versions are those with a label, in the order of their ids.
	Versions []Version
}

// Version is one labelled version.
type Version struct {
	ID       webhook.KeyVersion
	Current  bool // it carries AWSCURRENT
	Previous bool // it carries AWSPREVIOUS
	Kept     bool // it carries our label
	// Others are its remaining labels, such as AWSPENDING, sorted.
	Others []string
}

func (d Description) find(v webhook.KeyVersion) int {
	return slices.IndexFunc(d.Versions, func(o Version) bool { return o.ID == v })
}

// Describe lists the labelled versions. A secret that does not exist is [ErrNoVersion].
func (s *Store) Describe(ctx context.Context, e webhook.Endpoint) (Description, error) {
	out, err := s.client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String(e.Secret)})
	if err != nil {
		return Description{}, writeFault("DescribeSecret", err)
	}
	d := Description{DeletedAt: aws.ToTime(out.DeletedDate)}
	for id, stages := range out.VersionIdsToStages {
		if len(stages) == 0 {
			continue // deprecated; the service itself leaves these out
		}
		d.Versions = append(d.Versions, newVersion(webhook.KeyVersion(id), stages))
	}
	slices.SortFunc(d.Versions, func(a, b Version) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return d, nil
}

func newVersion(id webhook.KeyVersion, stages []string) Version {
	v := Version{ID: id}
	for _, stage := range stages {
		switch stage {
		case stageCurrent:
			v.Current = true
		case stagePrevious:
			v.Previous = true
		case labelOf(id):
			v.Kept = true
		default:
			v.Others = append(v.Others, stage)
		}
	}
	slices.Sort(v.Others)
	return v
}

// confirm returns nil when the version exists with this very value,
// [ErrOtherSecret] when it has another.
func (s *Store) confirm(ctx context.Context, e webhook.Endpoint, value Value, token string) error {
	_, stored, err := getValue(ctx, s.client, &secretsmanager.GetSecretValueInput{
		SecretId: aws.String(e.Secret), VersionId: aws.String(token),
	})
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(stored.borrow(), value.borrow()) != 1 {
		return ErrOtherSecret
	}
	return nil
}

// label puts our label on a version. Putting it there twice is no change.
func (s *Store) label(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) error {
	d, err := s.Describe(ctx, e)
	if err != nil {
		return err
	}
	if at := d.find(v); at >= 0 && d.Versions[at].Kept {
		return nil
	}
	_, err = s.client.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: aws.String(e.Secret), VersionStage: aws.String(labelOf(v)), MoveToVersionId: aws.String(string(v)),
	})
	if err != nil {
		return writeFault("UpdateSecretVersionStage", err)
	}
	return nil
}

func labelOf(v webhook.KeyVersion) string { return labelPrefix + string(v) }

// split returns the value as text where it is text, as bytes otherwise.
func split(v Value) (*string, []byte) {
	if utf8.Valid(v.borrow()) {
		return aws.String(string(v.borrow())), nil
	}
	return nil, v.Bytes()
}

func checkWrite(value Value, token string) error {
	if value.Empty() {
		return fault.New(fault.Permanent, "secret_empty", nil)
	}
	if len(token) < TokenBytesMin || len(token) > TokenBytesMax {
		return fault.New(fault.Permanent, "secret_token_length", fmt.Errorf("a token has %d to %d bytes", TokenBytesMin, TokenBytesMax))
	}
	return nil
}

func writeFault(op string, err error) error {
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return ErrNoVersion
	}
	if _, exists := errors.AsType[*types.ResourceExistsException](err); exists {
		return ErrOtherSecret
	}
	return storeFault(op, err)
}
