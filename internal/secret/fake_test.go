package secret_test

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"dakghar/internal/webhook"
)

// fake is Secrets Manager as far as this package uses it, with faults that a
// test puts before or after an operation.
type fake struct {
	mu      sync.Mutex
	secrets map[string]*stored
	calls   map[string]int
	// before runs ahead of an operation, without the lock; its error is the answer.
	before func(ctx context.Context, op, secret string) error
	// after runs behind an operation: an error here is a lost reply.
	after func(op string) error
}

type stored struct {
	values map[string][]byte
	text   map[string]bool
	stages map[string]string // stage → version
}

func newFake() *fake { return &fake{secrets: map[string]*stored{}, calls: map[string]int{}} }

func (f *fake) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// do counts the call and runs act under the lock, between the two hooks.
func (f *fake) do(ctx context.Context, op, secret string, act func() error) error {
	f.mu.Lock()
	f.calls[op]++
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(ctx, op, secret); err != nil {
			return err
		}
	}
	f.mu.Lock()
	err := act()
	f.mu.Unlock()
	if f.after != nil {
		if lost := f.after(op); lost != nil {
			return lost
		}
	}
	return err
}

// set puts a version there by other means, with AWSCURRENT.
func (f *fake) set(secret, version, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.secrets[secret]
	if s == nil {
		s = &stored{values: map[string][]byte{}, text: map[string]bool{}, stages: map[string]string{}}
		f.secrets[secret] = s
	}
	s.values[version], s.text[version] = []byte(value), true
	s.move("AWSCURRENT", version)
}

func (f *fake) drop(secret, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.secrets[secret].values, version)
}

func (s *stored) move(stage, version string) {
	if old, held := s.stages[stage]; held && stage == "AWSCURRENT" && old != version {
		s.stages["AWSPREVIOUS"] = old
	}
	s.stages[stage] = version
}

func (f *fake) GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	var out *secretsmanager.GetSecretValueOutput
	err := f.do(ctx, "GetSecretValue", *in.SecretId, func() error {
		s := f.secrets[*in.SecretId]
		if s == nil {
			return &types.ResourceNotFoundException{}
		}
		version := aws.ToString(in.VersionId)
		if in.VersionStage != nil {
			version = s.stages[*in.VersionStage]
		}
		value, ok := s.values[version]
		if !ok {
			return &types.ResourceNotFoundException{}
		}
		out = &secretsmanager.GetSecretValueOutput{VersionId: &version}
		if s.text[version] {
			out.SecretString = aws.String(string(value))
		} else {
			out.SecretBinary = slices.Clone(value)
		}
		return nil
	})
	return out, err
}

func (f *fake) CreateSecret(ctx context.Context, in *secretsmanager.CreateSecretInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.CreateSecretOutput, error) {
	err := f.do(ctx, "CreateSecret", *in.Name, func() error {
		if f.secrets[*in.Name] != nil {
			return &types.ResourceExistsException{}
		}
		s := &stored{values: map[string][]byte{}, text: map[string]bool{}, stages: map[string]string{}}
		f.secrets[*in.Name] = s
		s.put(*in.ClientRequestToken, in.SecretString, in.SecretBinary)
		s.move("AWSCURRENT", *in.ClientRequestToken)
		return nil
	})
	return &secretsmanager.CreateSecretOutput{VersionId: in.ClientRequestToken}, err
}

func (s *stored) put(version string, text *string, binary []byte) {
	s.values[version], s.text[version] = slices.Clone(binary), text != nil
	if text != nil {
		s.values[version] = []byte(*text)
	}
}

func (f *fake) PutSecretValue(ctx context.Context, in *secretsmanager.PutSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.PutSecretValueOutput, error) {
	err := f.do(ctx, "PutSecretValue", *in.SecretId, func() error {
		s := f.secrets[*in.SecretId]
		if s == nil {
			return &types.ResourceNotFoundException{}
		}
		if _, exists := s.values[*in.ClientRequestToken]; exists {
			return &types.ResourceExistsException{}
		}
		s.put(*in.ClientRequestToken, in.SecretString, in.SecretBinary)
		for _, stage := range in.VersionStages {
			s.move(stage, *in.ClientRequestToken)
		}
		return nil
	})
	return &secretsmanager.PutSecretValueOutput{VersionId: in.ClientRequestToken}, err
}

func (f *fake) DescribeSecret(ctx context.Context, in *secretsmanager.DescribeSecretInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.DescribeSecretOutput, error) {
	out := &secretsmanager.DescribeSecretOutput{VersionIdsToStages: map[string][]string{}}
	err := f.do(ctx, "DescribeSecret", *in.SecretId, func() error {
		s := f.secrets[*in.SecretId]
		if s == nil {
			return &types.ResourceNotFoundException{}
		}
		for stage, version := range s.stages {
			out.VersionIdsToStages[version] = append(out.VersionIdsToStages[version], stage)
		}
		return nil
	})
	return out, err
}

func (f *fake) UpdateSecretVersionStage(ctx context.Context, in *secretsmanager.UpdateSecretVersionStageInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.UpdateSecretVersionStageOutput, error) {
	err := f.do(ctx, "UpdateSecretVersionStage", *in.SecretId, func() error {
		s := f.secrets[*in.SecretId]
		switch {
		case s == nil:
			return &types.ResourceNotFoundException{}
		case in.MoveToVersionId != nil && in.RemoveFromVersionId == nil:
			if holder, held := s.stages[*in.VersionStage]; held && holder != *in.MoveToVersionId {
				return &types.InvalidParameterException{}
			}
			s.move(*in.VersionStage, *in.MoveToVersionId)
		case s.stages[*in.VersionStage] != aws.ToString(in.RemoveFromVersionId):
			return &types.InvalidParameterException{}
		default:
			delete(s.stages, *in.VersionStage)
		}
		return nil
	})
	return &secretsmanager.UpdateSecretVersionStageOutput{}, err
}

func endpoint(name string, versions ...webhook.KeyVersion) webhook.Endpoint {
	e := webhook.Endpoint{ID: webhook.EndpointID(name), Secret: "stack/endpoint/" + name}
	for _, v := range versions {
		e.Keys = append(e.Keys, webhook.TrustedKey{Version: v})
	}
	return e
}
