package delivery

// ParsePrintedKey is ParseSigningKey for keys that are printed in public, as
// those of the vectors are.
func ParsePrintedKey(id, text string) (SigningKey, error) {
	return parseSigningKey(id, text, standardScheme().DecodeTestKey)
}

// StandardScheme lets a test compare it with the receiver's.
var StandardScheme = standardScheme
