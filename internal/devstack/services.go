package devstack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"dakghar/internal/devstack/dynamodb"
	"dakghar/internal/devstack/fault"
	"dakghar/internal/devstack/kms"
	"dakghar/internal/devstack/s3"
	"dakghar/internal/devstack/secretsmanager"
	"dakghar/internal/devstack/sqs"
)

// services are the embedded AWS services behind one address.
type services struct {
	*fault.Injector                                    // in front of all of them
	embedded        *dynamodb.Server                   // nil with another DynamoDB
	changed         func(table string) <-chan struct{} // nil with another DynamoDB
	queues          *sqs.Server
	external        string // address of another DynamoDB, "" none
}

func newServices(o Options, baseURL string) (*services, error) {
	now := o.Clock.Now
	s := &services{external: o.DynamoDBEndpoint, queues: sqs.New(sqs.Config{Region: region, BaseURL: baseURL, Now: now})}
	db, err := s.newDynamoDB(now)
	if err != nil {
		return nil, err
	}
	s.Injector = fault.New(byTarget(map[string]http.Handler{
		"DynamoDB_20120810":        db,
		"DynamoDBStreams_20120810": db,
		"AmazonSQS":                s.queues,
		"secretsmanager":           secretsmanager.New(secretsmanager.Config{Region: region, Now: now}),
		"TrentService":             kms.New(kms.Config{Region: region, Now: now}),
	}, s3.New(s3.Config{Region: region, Now: now})), nil)
	return s, nil
}

func (s *services) newDynamoDB(now func() time.Time) (http.Handler, error) {
	if s.external != "" {
		return newProxy(s.external)
	}
	s.embedded = dynamodb.New(dynamodb.Config{Region: region, Now: now})
	s.changed = s.embedded.Changed
	return s.embedded, nil
}

// byTarget chooses a service by what stands before the dot in X-Amz-Target.
func byTarget(services map[string]http.Handler, otherwise http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := r.Header.Get("X-Amz-Target")
		if target == "" {
			otherwise.ServeHTTP(w, r)
			return
		}
		name, _, _ := strings.Cut(target, ".")
		service, ok := services[name]
		if !ok {
			writeJSON(w, http.StatusBadRequest, map[string]string{
				"__type": "UnknownOperationException", "message": fmt.Sprintf("the local stack has no service %q", name),
			})
			return
		}
		service.ServeHTTP(w, r)
	})
}

// newProxy passes calls on to another DynamoDB. Everything reaches DynamoDB at
// one address then, and faults can be put before it, whichever it is.
func newProxy(endpoint string) (http.Handler, error) {
	target, err := url.Parse(endpoint)
	if err != nil || target.Host == "" {
		return nil, fmt.Errorf("DynamoDB endpoint %q is no URL such as http://127.0.0.1:8000", endpoint)
	}
	return &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); shareTables(r.Out.Header) },
		ModifyResponse: addChecksum,
		Transport:      &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{
				"__type": "com.amazon.coral.availability#ServiceUnavailable", "message": "DynamoDB at " + endpoint + " does not answer",
			})
		},
	}, nil
}

// shareTables gives every call the same access key. DynamoDB Local keeps tables
// apart by it, unless it is started with -sharedDb, and checks no signature.
func shareTables(h http.Header) {
	before, credential, signed := strings.Cut(h.Get("Authorization"), "Credential=")
	if _, scope, ok := strings.Cut(credential, "/"); signed && ok {
		h.Set("Authorization", before+"Credential=local/"+scope)
	}
}

// addChecksum gives an answer the checksum that the SDK looks for and that
// DynamoDB Local leaves out of its errors.
func addChecksum(r *http.Response) error {
	if r.Header.Get("X-Amz-Crc32") != "" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Header.Set("X-Amz-Crc32", checksum(body))
	return nil
}

// reachable tells early, and in words, that another DynamoDB is not there.
func (s *services) reachable(ctx context.Context) error {
	if s.external == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := awsdynamodb.NewFromConfig(localConfig(s.external)).ListTables(ctx, &awsdynamodb.ListTablesInput{}); err != nil {
		return fmt.Errorf("DynamoDB at %s: %w", s.external, err)
	}
	return nil
}

func (s *services) close() { s.queues.Close() }
