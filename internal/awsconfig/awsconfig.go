// Package awsconfig makes the SDK's configuration of the functions, with the
// time limits that the promises rest on: the SDK's defaults (30 s to connect,
// 20 s between tries) would outlive every deadline here.
//
// It reads the variables that Lambda sets and nothing else: no files, no
// metadata service, no single sign-on. So it makes no call, starts at once, and
// leaves a megabyte of credential sources out of each binary. Endpoints come
// from the SDK's own variables, so that local and deployed programs are the same.
package awsconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"
)

// Limits bound one SDK call.
type Limits struct {
	Attempts   int           // tries of one call, at least 1
	PerAttempt time.Duration // of one try, connecting included
	BackoffMax time.Duration // between tries
}

// Request are the limits on the acknowledgement path: two tries, both within
// the time in which a provider must be answered.
func Request() Limits {
	return Limits{Attempts: 2, PerAttempt: 500 * time.Millisecond, BackoffMax: 40 * time.Millisecond}
}

// Background are the limits behind the queue.
func Background() Limits {
	return Limits{Attempts: 4, PerAttempt: 3 * time.Second, BackoffMax: time.Second}
}

// connectMax bounds connecting, TLS apart.
const connectMax = 400 * time.Millisecond

// connectionsPerHost keeps enough connections open for a batch's calls at once.
const connectionsPerHost = 64

// Load reads the environment. It fails when Lambda's variables are not there.
func Load(getenv func(string) string, l Limits) (aws.Config, error) {
	region, id, key := getenv("AWS_REGION"), getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	if region == "" || id == "" || key == "" {
		return aws.Config{}, errors.New("AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set, as Lambda sets them")
	}
	cfg := aws.Config{
		Region:        region,
		Credentials:   credentials.NewStaticCredentialsProvider(id, key, getenv("AWS_SESSION_TOKEN")),
		HTTPClient:    wholeAnswers{client(l)},
		Retryer:       func() aws.Retryer { return retryer(l) },
		ConfigSources: []any{endpoints{getenv}},
		APIOptions:    hooks(),
	}
	if url := getenv("AWS_ENDPOINT_URL"); url != "" {
		cfg.BaseEndpoint = &url
	}
	return cfg, nil
}

// OutOfLine takes a client's calls out of the line of invocations by which Lambda
// finds loops: after 16 rounds over a queue it drops the message. It is for work
// that goes round because its row says so, where each round is bounded by that row;
// whatever may come back over somebody else stays in line.
//
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
func OutOfLine(stack *middleware.Stack) error {
	_, err := stack.Build.Remove("RecursionDetection")
	return err
}

func client(l Limits) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithTimeout(l.PerAttempt).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = min(connectMax, l.PerAttempt) }).
		WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = connectionsPerHost })
}

// wholeAnswers hides from net/http that the SDK's request body can write itself
// out. The SDK closes that body when the answer's headers arrive; its own writer
// then reports an end that net/http takes for a failure, and the connection is
// cut while the rest of the answer is read. Seen with smithy-go 1.28.9 on
// answers over 4 KiB: "use of closed network connection" on HTTP 200.
type wholeAnswers struct{ client aws.HTTPClient }

func (w wholeAnswers) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return w.client.Do(r)
}

func retryer(l Limits) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = l.Attempts
		o.MaxBackoff = l.BackoffMax
		// A retry's price is bounded by the attempts; a shared purse of tokens
		// would refuse them during just those minutes that need them.
		o.RateLimiter = noRateLimit{}
	})
}

type noRateLimit struct{}

func (noRateLimit) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}

func (noRateLimit) AddTokens(uint) error { return nil }

// endpoints answers the SDK's question for a service's own endpoint, as its own
// environment source does: AWS_ENDPOINT_URL_<SERVICE>, in capitals, with
// underscores for spaces.
type endpoints struct{ getenv func(string) string }

// GetServiceBaseEndpoint implements the SDK's source of endpoints.
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	name := strings.ToUpper(strings.ReplaceAll(service, " ", "_"))
	url := e.getenv(fmt.Sprintf("AWS_ENDPOINT_URL_%s", name))
	return url, url != "", nil
}
