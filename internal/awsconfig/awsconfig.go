// Package awsconfig loads the SDK's configuration for the functions and the
// command, with the time limits that the promises rest on: the SDK's defaults
// (30 s to connect, 20 s between tries) would outlive every deadline here.
//
// It makes no call. Endpoints come from the SDK's own variables alone
// (AWS_ENDPOINT_URL and its kin), so that local and deployed programs are the same.
package awsconfig

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
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

// Load reads the environment's configuration with limits.
func Load(ctx context.Context, l Limits) (aws.Config, error) {
	client := awshttp.NewBuildableClient().
		WithTimeout(l.PerAttempt).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = min(connectMax, l.PerAttempt) }).
		WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = connectionsPerHost })
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(client),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = l.Attempts
				o.MaxBackoff = l.BackoffMax
				// A retry's price is bounded by the attempts; a shared purse of
				// tokens would refuse them during just those minutes that need them.
				o.RateLimiter = noRateLimit{}
			})
		}),
	)
	if err != nil {
		return cfg, fmt.Errorf("load AWS configuration: %w", err)
	}
	cfg.APIOptions = append(cfg.APIOptions, hooks()...)
	return cfg, nil
}

type noRateLimit struct{}

func (noRateLimit) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}

func (noRateLimit) AddTokens(uint) error { return nil }
