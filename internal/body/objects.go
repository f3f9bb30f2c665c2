package body

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"dakghar/internal/awsfault"
	"dakghar/internal/webhook"
)

// S3 is the part of S3 that large bodies need.
type S3 interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
}

// objects keeps sealed bytes in the bucket, each under a key that is used once.
type objects struct {
	client S3
	bucket string
	newID  func() string
}

// upload stores sealed bytes and returns their reference. All objects of one
// body, superseded ones too, are under its id.
func (o objects) upload(ctx context.Context, b webhook.Body, sealed []byte) (string, error) {
	ref := "bodies/" + string(b.ID) + "/" + b.PutID + "." + o.newID()
	_, err := o.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &o.bucket, Key: &ref, Body: bytes.NewReader(sealed), ContentLength: aws.Int64(int64(len(sealed))),
		ContentType: aws.String("application/octet-stream"), IfNoneMatch: aws.String("*"),
	})
	// The key is this call's alone: a taken one was taken by the SDK's own earlier try.
	if err != nil && awsfault.Code(err) != "PreconditionFailed" {
		return "", ours("bucket", "PutObject", err)
	}
	return ref, nil
}

// download returns the bytes of an object. A reference to another body's object
// needs no check: its bytes do not open here.
func (o objects) download(ctx context.Context, ref string) ([]byte, error) {
	out, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: &ref})
	if _, missing := errors.AsType[*types.NoSuchKey](err); missing {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, ours("bucket", "GetObject", err)
	}
	// What is longer than any sealed body is cut, and then fails its tag.
	sealed, err := io.ReadAll(io.LimitReader(out.Body, sealedBytesMax))
	if closed := out.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, ours("bucket", "GetObject", err)
	}
	return sealed, nil
}

func (o objects) delete(ctx context.Context, ref string) error {
	if _, err := o.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &o.bucket, Key: &ref}); err != nil {
		return ours("bucket", "DeleteObject", err)
	}
	return nil
}
