package stack

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	typeBucket = "AWS::S3::Bucket"
	typeKey    = "AWS::KMS::Key"
)

type bucketProperties struct {
	BucketName                                                                    text
	BucketEncryption                                                              bucketEncryption
	LifecycleConfiguration, VersioningConfiguration                               ignored // memory, gone with the process
	OwnershipControls, PublicAccessBlockConfiguration, LoggingConfiguration, Tags ignored // only the policies of roles are checked
	ObjectLockEnabled, ObjectLockConfiguration                                    ignored
}

// bucketEncryption is not done here, but its key takes permissions.
type bucketEncryption struct {
	ServerSideEncryptionConfiguration []struct {
		BucketKeyEnabled              ignored
		ServerSideEncryptionByDefault struct {
			SSEAlgorithm   text
			KMSMasterKeyID text
		}
	}
}

func (b bucketEncryption) key() (string, bool) {
	for _, rule := range b.ServerSideEncryptionConfiguration {
		if d := rule.ServerSideEncryptionByDefault; d.SSEAlgorithm == "aws:kms" && d.KMSMasterKeyID != "" {
			return string(d.KMSMasterKeyID), true
		}
	}
	return "", false
}

func (c *creation) makeBucket(ctx context.Context, id string, properties any) (Resource, error) {
	var p bucketProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	name := strings.ToLower(c.physicalName(p.BucketName, id)) // a bucket's name has no capitals
	_, err := c.options.Clients.S3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	var mine *s3types.BucketAlreadyOwnedByYou
	if err != nil && !errors.As(err, &mine) {
		return Resource{}, err
	}
	if key, sealed := p.BucketEncryption.key(); sealed {
		c.stack.BucketKeys[name] = key
	}
	return Resource{Ref: name, Attributes: map[string]string{"Arn": "arn:aws:s3:::" + name}}, nil
}

type keyProperties struct {
	Description                                                                        text
	KeySpec, KeyUsage                                                                  text
	EnableKeyRotation, PendingWindowInDays, RotationPeriodInDays, Enabled, MultiRegion ignored // the key is gone with the process
	KeyPolicy, BypassPolicyLockoutSafetyCheck, Tags                                    ignored // only the policies of roles are checked
}

func (c *creation) makeKey(ctx context.Context, _ string, properties any) (Resource, error) {
	var p keyProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	if p.KeySpec != "" && p.KeySpec != "SYMMETRIC_DEFAULT" || p.KeyUsage != "" && p.KeyUsage != "ENCRYPT_DECRYPT" {
		return Resource{}, errors.New("the local stack knows symmetric keys for encryption only")
	}
	out, err := c.options.Clients.KMS.CreateKey(ctx, &kms.CreateKeyInput{Description: aws.String(string(p.Description))})
	if err != nil {
		return Resource{}, err
	}
	m := out.KeyMetadata
	return Resource{Ref: aws.ToString(m.KeyId), Attributes: map[string]string{"Arn": aws.ToString(m.Arn), "KeyId": aws.ToString(m.KeyId)}}, nil
}
