package operator

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is the text of a signing secret. It prints as [redacted].
type Secret struct {
	// A function, because fmt prints what unexported fields hold without asking
	// them; of a function it prints the address.
	show func() string
}

const redacted = "[redacted]"

// NewSecret returns a secret of a text.
func NewSecret(text string) Secret { return Secret{show: func() string { return text }} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.show == nil {
		return ""
	}
	return s.show()
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// Format prints [redacted] for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String returns [redacted].
func (s Secret) String() string { return redacted }

// MarshalText returns [redacted].
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns [redacted].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
