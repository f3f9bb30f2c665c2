package body_test

import (
	"context"
	"crypto/rand"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"dakghar/internal/body"
	devdynamodb "dakghar/internal/devstack/dynamodb"
	devkms "dakghar/internal/devstack/kms"
	devs3 "dakghar/internal/devstack/s3"
)

var ctx = context.Background()

var local = credentials.NewStaticCredentialsProvider("local", "local", "")

// services is a set of stores that the suites run against.
type services struct {
	store       func() *body.Store // a new process on the same stores
	objectCount func(t *testing.T) int
}

// forEachWorld runs a suite on the fakes; on the embedded services through the
// SDK; and, where the environment names them, on DynamoDB Local
// (DYNAMODB_LOCAL_URL) and on moto's KMS and S3 (MOTO_URL).
func forEachWorld(t *testing.T, suite func(*testing.T, services)) {
	run := func(name string, set func(t *testing.T, cfg *body.Config)) {
		t.Run(name, func(t *testing.T) {
			cfg := newWorld().config()
			set(t, &cfg)
			objects := &counted{S3: cfg.S3}
			cfg.S3 = objects
			suite(t, services{
				store:       func() *body.Store { return body.New(cfg) },
				objectCount: func(*testing.T) int { return int(objects.n.Load()) },
			})
		})
	}
	run("fakes", func(*testing.T, *body.Config) {})
	run("embedded", func(t *testing.T, cfg *body.Config) {
		cfg.Dynamo, cfg.Table = table(t, serve(t, httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))))
		cfg.KMS, cfg.KeyID = key(t, serve(t, httptest.NewServer(devkms.New(devkms.Config{}))))
		cfg.S3, cfg.Bucket = bucket(t, serve(t, httptest.NewServer(devs3.New(devs3.Config{}))))
	})
	run("DynamoDB Local", func(t *testing.T, cfg *body.Config) { cfg.Dynamo, cfg.Table = table(t, named(t, "DYNAMODB_LOCAL_URL")) })
	run("moto", func(t *testing.T, cfg *body.Config) {
		url := named(t, "MOTO_URL")
		cfg.KMS, cfg.KeyID = key(t, url)
		cfg.S3, cfg.Bucket = bucket(t, url)
	})
}

// counted counts the objects that came and went.
type counted struct {
	body.S3
	n atomic.Int64
}

func (c *counted) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	out, err := c.S3.PutObject(ctx, in, opts...)
	if err == nil {
		c.n.Add(1)
	}
	return out, err
}

func (c *counted) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	out, err := c.S3.DeleteObject(ctx, in, opts...)
	if err == nil {
		c.n.Add(-1)
	}
	return out, err
}

func serve(t *testing.T, server *httptest.Server) string {
	t.Cleanup(server.Close)
	return server.URL
}

func named(t *testing.T, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Skip(variable + " is not set")
	}
	return url
}

// table makes an empty Body table of its own, and takes it away at the end.
func table(t *testing.T, url string) (*dynamodb.Client, string) {
	t.Helper()
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url, Region: "us-east-1", Credentials: local,
		DisableValidateResponseChecksum: true, // DynamoDB Local's error answers carry none
	})
	name := "body-" + strings.ToLower(rand.Text())
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	})
	return db, name
}

// key makes a KMS key.
func key(t *testing.T, url string) (*kms.Client, string) {
	t.Helper()
	client := kms.New(kms.Options{BaseEndpoint: &url, Region: "us-east-1", Credentials: local})
	made, err := client.CreateKey(ctx, &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	return client, *made.KeyMetadata.Arn
}

// bucket makes a bucket, or finds the one of an earlier suite.
func bucket(t *testing.T, url string) (*s3.Client, string) {
	t.Helper()
	client := s3.New(s3.Options{BaseEndpoint: &url, Region: "us-east-1", Credentials: local, UsePathStyle: true})
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("bodies")}); err != nil {
		t.Fatal(err)
	}
	return client, "bodies"
}
