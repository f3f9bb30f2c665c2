package secret

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Value is the text or bytes of one key, as the provider gave it. It prints as
// [redacted] whatever the verb, also from inside other types and as JSON.
// The zero Value is empty.
type Value struct {
	// A function, because fmt does not call the methods of a Value that sits in
	// another struct's unexported field, and for some verbs follows pointers
	// there. A function prints as an address.
	show func() []byte
}

// NewValue returns a Value with a copy of b.
func NewValue(b []byte) Value { return ownValue(bytes.Clone(b)) }

// ownValue returns a Value that takes b over.
func ownValue(b []byte) Value { return Value{show: func() []byte { return b }} }

// Bytes returns a copy of the key: the caller may clear it after use.
func (v Value) Bytes() []byte { return bytes.Clone(v.borrow()) }

// borrow returns the bytes themselves, which nobody may change.
func (v Value) borrow() []byte {
	if v.show == nil {
		return nil
	}
	return v.show()
}

// Empty reports whether there is nothing to sign with.
func (v Value) Empty() bool { return len(v.borrow()) == 0 }

// Format prints [redacted] for every verb.
func (v Value) Format(f fmt.State, _ rune) { redact(f) }

// String returns [redacted].
func (v Value) String() string { return redacted }

// MarshalText returns [redacted], so that encoders cannot leak the value either.
func (v Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns [redacted].
func (v Value) LogValue() slog.Value { return slog.StringValue(redacted) }

func redact(f fmt.State) { _, _ = io.WriteString(f, redacted) }
