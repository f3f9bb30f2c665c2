// Package e2e tests the product as it runs: the real function binaries behind
// the local stack's Runtime API, the resources of template.yaml, requests over
// HTTP. It kills processes at named points and stalls services. There is no code
// here but tests.
package e2e
