package delivery_test

import (
	"strings"
	"testing"

	"dakghar/internal/delivery"
)

// Proves X4, X10: a further header can neither stand in for one of ours nor begin
// another one, and a secret has another place.
func TestAFurtherHeaderIsChecked(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"X-Partner": "acme", "x_team": "payments, eu", "Accept": "application/json", "X-Author": "ada"} {
		if err := delivery.CheckHeader(name, value); err != nil {
			t.Errorf("%s: %s is refused: %v", name, value, err)
		}
	}
	for _, tt := range []struct{ name, value, want string }{
		{"Webhook-Id", "x", "the sender itself"}, {"WEBHOOK-signature", "x", "the sender itself"}, {"dakghar-attempt", "1", "the sender itself"},
		{"Content-Type", "text/plain", "the sender itself"}, {"content-length", "1", "the sender itself"}, {"Host", "evil.com", "the sender itself"},
		{"Idempotency-Key", "x", "the sender itself"}, {"Transfer-Encoding", "chunked", "the sender itself"}, {"Connection", "close", "the sender itself"},
		{"Proxy-Authorization", "x", "the sender itself"}, {"X-Forwarded-For", "x", "the sender itself"}, {"Cookie", "a=b", "the sender itself"},
		{"X-Partner", "a\r\nX-Evil: b", "printable"}, {"X-Partner", "a\nb", "printable"}, {"X-Partner", "a\x00b", "printable"}, {"X-Partner", "ü", "printable"},
		{"X-Partner", "", "printable"}, {"X-Partner", " a", "printable"}, {"X-Partner", strings.Repeat("a", 1025), "printable"},
		{"X-Partner: y\r\nX", "a", "letters, digits"}, {"", "a", "letters, digits"}, {"X Partner", "a", "letters, digits"}, {":authority", "a", "letters, digits"},
		{"X-Pаrtner", "a", "letters, digits"}, {strings.Repeat("a", 65), "a", "letters, digits"},
		{"Authorization", "x", "a secret"}, {"X-Api-Key", "x", "a secret"}, {"X-Partner", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "a secret"},
	} {
		if err := delivery.CheckHeader(tt.name, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "4eC39") {
			t.Errorf("%q: %q: %v, want %q", tt.name, tt.value, err, tt.want)
		}
	}
	if err := delivery.CheckCredentialHeader("Authorization", "Bearer sk_live_4eC39HqLyjWDarjtT1zdp7dc"); err != nil {
		t.Errorf("a credential's header: %v", err)
	}
	for name, value := range map[string]string{"Webhook-Signature": "x", "Authorization": "Bearer x\r\nHost: y"} {
		if err := delivery.CheckCredentialHeader(name, value); err == nil || strings.Contains(err.Error(), "Bearer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
