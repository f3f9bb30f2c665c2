// Package frontdoor is an HTTP server that behaves as an API Gateway HTTP API
// with payload format 2.0 in front of Lambda functions.
//
// It keeps what a webhook receiver depends on: routes, the lower-cased and joined
// headers, cookies apart, the body as text or base64 by content type, limits on
// headers and body, throttles per route, the integration timeout, and the answers
// that the gateway gives by itself. It adds x-forwarded-proto: https, as the real
// one speaks nothing else.
//
// It is lossy exactly where the gateway is: a body of a text content type that is
// not UTF-8 reaches the function with U+FFFD in it, so a signature over the real
// bytes cannot verify. What the real gateway substitutes is not documented; any
// substitution fails closed.
//
// It does not imitate authorisers, CORS, stage variables, or custom domains.
//
// Facts: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
// and http-api-quotas.html; the content types that stay text were observed on the
// real service, see the package's tests.
package frontdoor
