package guard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"dakghar/internal/devstack/iam"
	"dakghar/internal/devstack/s3"
)

const (
	targetHeader = "X-Amz-Target"
	invokePath   = "/2015-03-31/functions/"
)

// call is what one SDK call asks for.
type call struct {
	action   string // for a denial when the rest cannot be read
	requests []iam.Request
	absent   *iam.Request // what telling "not found" takes
}

// read finds out what a call asks for, as AWS sees it.
func (c Config) read(r *http.Request, body []byte) (call, error) {
	target := r.Header.Get(targetHeader)
	if target == "" {
		return c.readPath(r)
	}
	service, operation, _ := strings.Cut(target, ".")
	readers := map[string]struct {
		prefix string
		read   func(operation string, body []byte) ([]iam.Request, error)
	}{
		"DynamoDB_20120810":        {"dynamodb:", c.readDynamoDB},
		"DynamoDBStreams_20120810": {"dynamodb:", c.readStreams},
		"AmazonSQS":                {"sqs:", c.readSQS},
		"secretsmanager":           {"secretsmanager:", c.readSecrets},
		"TrentService":             {"kms:", c.readKMS},
		"AWSEvents":                {"events:", c.readEvents},
	}
	reader, known := readers[service]
	if !known {
		return call{action: target}, fmt.Errorf("service %s is not known", service)
	}
	requests, err := reader.read(operation, body)
	return call{action: reader.prefix + operation, requests: requests}, err
}

// readPath reads the services that are told by path and method.
func (c Config) readPath(r *http.Request) (call, error) {
	if name, ok := strings.CutPrefix(r.URL.Path, invokePath); ok {
		name, _, _ = strings.Cut(name, "/")
		return call{requests: []iam.Request{{Action: "lambda:InvokeFunction", Resource: c.arn("lambda", "function:"+name)}}}, nil
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	object := "arn:aws:s3:::" + bucket + "/" + key
	absent := &iam.Request{Action: "s3:ListBucket", Resource: "arn:aws:s3:::" + bucket}
	switch operation := s3.Operation(r); operation {
	case "GetObject", "HeadObject":
		return call{requests: append([]iam.Request{{Action: "s3:GetObject", Resource: object}}, c.throughS3(bucket, "kms:Decrypt")...), absent: absent}, nil
	case "PutObject":
		// S3 asks for Decrypt as well where a bucket key is in use: it checks that key's integrity.
		return call{requests: append([]iam.Request{{Action: "s3:PutObject", Resource: object}}, c.throughS3(bucket, "kms:GenerateDataKey", "kms:Decrypt")...)}, nil
	case "DeleteObject":
		return call{requests: []iam.Request{{Action: "s3:DeleteObject", Resource: object}}}, nil
	default:
		return call{action: "s3:" + operation}, fmt.Errorf("no %s of S3 is known that functions make", r.Method)
	}
}

// throughS3 is the use of a bucket's key, which S3 makes in its caller's name.
func (c Config) throughS3(bucket string, actions ...string) []iam.Request {
	key, sealed := c.BucketKeys[bucket]
	if !sealed {
		return nil
	}
	var out []iam.Request
	for _, action := range actions {
		out = append(out, iam.Request{Action: action, Resource: key, Context: map[string][]string{
			"kms:viaservice": {"s3." + c.Region + ".amazonaws.com"},
		}})
	}
	return out
}

// arn is an ARN in this account and region.
func (c Config) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + c.Region + ":" + c.Account + ":" + resource
}

func (c Config) readSQS(operation string, body []byte) ([]iam.Request, error) {
	var in struct{ QueueUrl, SourceArn string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	resource := "*"
	switch {
	case in.QueueUrl != "":
		resource = c.arn("sqs", in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:])
	case in.SourceArn != "":
		resource = in.SourceArn
	}
	// A batch takes the permission of one.
	return []iam.Request{{Action: "sqs:" + strings.TrimSuffix(operation, "Batch"), Resource: resource}}, nil
}

// suffix stands for the six characters that Secrets Manager adds to a name.
const suffix = "-000000"

func (c Config) readSecrets(operation string, body []byte) ([]iam.Request, error) {
	var in struct{ SecretId, Name string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	resource := "*"
	switch {
	case strings.HasPrefix(in.SecretId, "arn:"):
		resource = in.SecretId
	case in.SecretId+in.Name != "":
		resource = c.arn("secretsmanager", "secret:"+in.SecretId+in.Name+suffix)
	}
	return []iam.Request{{Action: "secretsmanager:" + operation, Resource: resource}}, nil
}

func (c Config) readKMS(operation string, body []byte) ([]iam.Request, error) {
	var in struct {
		KeyId             string
		EncryptionContext map[string]string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.KeyId == "" {
		return nil, fmt.Errorf("%s names no key", operation) // AWS would find it in the ciphertext
	}
	if !strings.HasPrefix(in.KeyId, "arn:") {
		in.KeyId = c.arn("kms", "key/"+in.KeyId)
	}
	q := iam.Request{Action: "kms:" + operation, Resource: in.KeyId, Context: map[string][]string{}}
	for name, value := range in.EncryptionContext {
		q.Context["kms:encryptioncontext:"+strings.ToLower(name)] = []string{value}
	}
	return []iam.Request{q}, nil
}

func (c Config) readEvents(operation string, body []byte) ([]iam.Request, error) {
	var in struct {
		Entries []struct{ EventBusName string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var out []iam.Request
	for _, e := range in.Entries {
		bus := e.EventBusName
		if !strings.HasPrefix(bus, "arn:") {
			bus = c.arn("events", "event-bus/"+bus)
		}
		out = append(out, iam.Request{Action: "events:" + operation, Resource: bus})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s without entries", operation)
	}
	return out, nil
}
