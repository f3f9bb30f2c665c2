package delivery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a subscription's further headers.
const (
	HeadersMax          = 16
	HeaderNameBytesMax  = 64
	HeaderValueBytesMax = 1024
)

// CheckHeader says what is wrong with a further header, in words for the person
// who gives it. None of them repeats the value. A header that carries a secret is
// told apart: its place is the secret store; see [CheckCredentialHeader].
func CheckHeader(name, value string) error {
	if err := checkHeaderName(name); err != nil {
		return err
	}
	if secretName(name) || looksSecret(value) || strings.EqualFold(name, "authorization") {
		return errors.New("it looks like a secret: give it with --credential-header NAME --credential-file FILE, which keeps it in Secrets Manager")
	}
	return checkHeaderValue(value)
}

// CheckCredentialHeader is [CheckHeader] for the header that carries the
// partner's credential.
func CheckCredentialHeader(name, credential string) error {
	if err := checkHeaderName(name); err != nil {
		return err
	}
	return checkHeaderValue(credential)
}

// ownHeaders are those that the sender, or HTTP itself, puts into a request.
func ownHeaders() []string {
	return []string{
		"host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect", "accept-encoding", "user-agent", "date",
		"idempotency-key", "cookie", "cookie2", "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "http2-settings",
	}
}

func checkHeaderName(name string) error {
	low := strings.ToLower(name)
	switch {
	case name == "" || len(name) > HeaderNameBytesMax || strings.ContainsFunc(name, func(r rune) bool {
		return kindOf(r) == other && r != '-' && r != '_'
	}):
		return fmt.Errorf("a header's name has 1 to %d letters, digits, hyphens and underscores", HeaderNameBytesMax)
	case strings.HasPrefix(low, "webhook-"), strings.HasPrefix(low, "dakghar-"), strings.HasPrefix(low, "content-"), strings.HasPrefix(low, "proxy-"),
		slices.Contains(ownHeaders(), low):
		return errors.New("the sender itself sets this header")
	}
	return nil
}

// checkHeaderValue refuses whatever could begin another header.
func checkHeaderValue(value string) error {
	if value == "" || len(value) > HeaderValueBytesMax || strings.TrimSpace(value) != value ||
		strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("a header's value is 1 to %d printable ASCII characters, without a line end and without space around it", HeaderValueBytesMax)
	}
	return nil
}
