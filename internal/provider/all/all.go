// Package all lists the adapters that the product ships with. To add one, write
// its package and add its line here.
package all

import (
	"dakghar/internal/provider"
	"dakghar/internal/provider/github"
	"dakghar/internal/provider/paddle"
	"dakghar/internal/provider/razorpay"
	"dakghar/internal/provider/shopify"
	"dakghar/internal/provider/slack"
	"dakghar/internal/provider/standardwebhooks"
	"dakghar/internal/provider/stripe"
	"dakghar/internal/provider/svix"
)

// Adapters returns them.
func Adapters() []*provider.Adapter {
	return []*provider.Adapter{
		standardwebhooks.Adapter(),
		svix.Adapter(),
		stripe.Adapter(),
		github.Adapter(),
		shopify.Adapter(),
		slack.Adapter(),
		razorpay.Adapter(),
		paddle.Adapter(),
	}
}
