package signature

// published lists secrets that anybody can read: worked examples of the
// providers' documentation and fixed secrets of their test code. An endpoint
// that trusts one is open to everybody, so [Scheme.DecodeKey] refuses them for
// every scheme.
func published() []string {
	return []string{
		// Standard Webhooks and Svix: libraries/go/webhook_test.go, server/svix-server/src/worker.rs, manual verification page.
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
		"whsec_plJ3nmyCDGBKInavdOK15jsl",
		// Svix: the public half of the key pair in server/svix-server/src/core/types/mod.rs.
		"whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
		// Stripe: stripe-go webhook/client_test.go.
		"whsec_test_secret",
		// GitHub: "Validating webhook deliveries"; octokit/webhooks-methods.js tests.
		"It's a Secret to Everybody",
		"mysecret",
		// Shopify: shopify-api-js test configuration.
		"test_secret_key",
		// Slack: "Verifying requests from Slack".
		"8f742231b10e8888abcd99yyyzzz85a5",
		// Razorpay: razorpay-python tests.
		"key_secret",
		// Paddle: paddle-go-sdk webhook_verifier_test.go.
		"pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr",
		// Zendesk: the fixed secret of its "test webhook" button.
		"dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==",
		// Our own vectors: internal/delivery/testdata/vectors.json.
		"whsec_ZGFrZ2hhciB2ZWN0b3JzLCBmaXJzdCBzaGFyZWQga2V5",
		"whsec_ZGFrZ2hhciB2ZWN0b3JzLCBzZWNvbmQgc2hhcmVkIGtleQ==",
		"whpk_MdKQn5v2pnE1lt4Uw88ZcKm0/2Le38g9iZ8HIhO7uDA=",
	}
}
