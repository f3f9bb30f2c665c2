package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"hash/crc32"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/awsconfig"
	"dakghar/internal/body"
	devdynamo "dakghar/internal/devstack/dynamodb"
	devkms "dakghar/internal/devstack/kms"
	devs3 "dakghar/internal/devstack/s3"
	devsecrets "dakghar/internal/devstack/secretsmanager"
	devsqs "dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/stack"
	"dakghar/internal/directory"
	"dakghar/internal/dynamo"
	"dakghar/internal/ingress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
)

// site is one ingress in this process, built as functions/ingress builds it, and
// what stands behind it.
type site struct {
	*sender
	wire      *wire
	db        *dynamodb.Client // the ingress's own
	tables    dynamo.Tables
	bodyTable string
	door      *lambdaedge.HTTP
}

// newSite makes a site whose services are embedded and reached over a wire. With
// the address of a DynamoDB, that alone is reached over the network.
func newSite(t *testing.T, name, dynamoURL string) *site {
	t.Helper()
	s := &site{wire: newWire()}
	cfg := config(t, "http://127.0.0.1", awsconfig.Request())
	cfg.HTTPClient = s.wire
	s.db = dynamodb.NewFromConfig(cfg)
	if dynamoURL != "" {
		s.db = dynamodb.NewFromConfig(config(t, dynamoURL, patient))
	}
	made, err := stack.Create(t.Context(), stack.Options{
		TemplatePath: "../../template.yaml", Name: name,
		Clients: stack.Clients{DynamoDB: s.db, SQS: sqs.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := func(id string) string { return made.Resources[id].Ref }
	s.tables = dynamo.Tables{Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Registry: ref("RegistryTable")}
	s.bodyTable = ref("BodyTable")
	secrets := secretsmanager.NewFromConfig(cfg)
	s.sender = register(t, secrets, s.store())
	s.door = s.open(t, body.Config{
		Dynamo: s.db, S3: s3.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg), Table: s.bodyTable, Bucket: ref("BodyBucket"), KeyID: ref("DataKey"),
		InlineBytes: 32 << 10, Life: 30 * 24 * time.Hour, Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	}, secrets)
	return s
}

// patient waits for the slowest answer of a DynamoDB on a busy machine.
var patient = awsconfig.Limits{Attempts: 1, PerAttempt: time.Minute}

// config is the functions' own configuration of the SDK.
func config(t *testing.T, url string, limits awsconfig.Limits) aws.Config {
	t.Helper()
	env := map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_ENDPOINT_URL": url}
	cfg, err := awsconfig.Load(func(name string) string { return env[name] }, limits)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (s *site) open(t *testing.T, bodies body.Config, secrets secret.Client) *lambdaedge.HTTP {
	t.Helper()
	store := s.store()
	keys := secret.New(secret.Config{Client: secrets, Now: time.Now})
	return &lambdaedge.HTTP{
		Receiver: &ingress.Receiver{
			Providers: providers(t), Endpoints: directory.New(store), Keys: secret.Texts{Cache: keys}, Bodies: body.New(bodies), Inbox: store,
			Recent: ingress.NewRecent(4096), Budget: ingress.BudgetMax, Now: time.Now, NewID: rand.Text,
			Sources: limit.NewSources(0, 0), Limits: limit.NewLimiter(store, limit.SettleTimeout),
		},
		Log: telemetry.New(io.Discard, "ingress", time.Now), Now: time.Now, KeyAge: keys.Oldest,
	}
}

func (s *site) store() *dynamo.Store {
	return &dynamo.Store{DB: s.db, Tables: s.tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
}

// accepted is how the answer to an accepted event begins.
var accepted = []byte(`{"statusCode":200,`)

// accept lets the ingress accept one event.
func (s *site) accept(ctx context.Context, t *testing.T, payload []byte) {
	answer, err := s.door.Invoke(ctx, payload)
	if err != nil || !bytes.HasPrefix(answer, accepted) || !bytes.Contains(answer, []byte(`accepted`)) {
		t.Errorf("an event was not accepted: %v, %s", err, answer)
	}
}

// wire carries calls to the embedded services inside one process: no socket, no
// goroutine, so that a process's CPU time is the caller's and the service's.
type wire struct {
	targets map[string]http.Handler // by the prefix of X-Amz-Target
	other   http.Handler            // S3
	// quiet answers what ingress writes for an event without carrying it out: what
	// is left is the caller's CPU time.
	quiet        atomic.Bool
	calls, bytes atomic.Int64 // while quiet
}

func newWire() *wire {
	db := devdynamo.New(devdynamo.Config{})
	return &wire{
		targets: map[string]http.Handler{
			"DynamoDB_20120810": db, "DynamoDBStreams_20120810": db, "AmazonSQS": devsqs.New(devsqs.Config{Now: time.Now, BaseURL: "http://127.0.0.1"}),
			"secretsmanager": devsecrets.New(devsecrets.Config{Now: time.Now}), "TrentService": devkms.New(devkms.Config{Now: time.Now}),
		},
		other: devs3.New(devs3.Config{Now: time.Now}),
	}
}

var done = []byte("{}")

// Do implements the SDK's HTTP client.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	target := req.Header.Get("X-Amz-Target")
	answer := recorder{header: http.Header{}, status: http.StatusOK}
	if w.quiet.Load() && (target == "DynamoDB_20120810.PutItem" || target == "DynamoDB_20120810.TransactWriteItems") {
		n, err := io.Copy(io.Discard, req.Body)
		if err != nil {
			return nil, err
		}
		w.calls.Add(1)
		w.bytes.Add(n)
		answer.header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(done)), 10))
		answer.body.Write(done)
	} else {
		w.serve(&answer, target, req)
	}
	return &http.Response{
		StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: answer.header,
		Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: req,
	}, nil
}

func (w *wire) serve(answer *recorder, target string, req *http.Request) {
	if req.Body == nil {
		req.Body = http.NoBody
	}
	req.RequestURI = req.URL.RequestURI()
	if req.ContentLength > 0 { // what a connection would have written
		req.Header.Set("Content-Length", strconv.FormatInt(req.ContentLength, 10))
	}
	prefix, _, _ := strings.Cut(target, ".")
	if h, ok := w.targets[prefix]; ok {
		h.ServeHTTP(answer, req)
		return
	}
	w.other.ServeHTTP(answer, req)
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
