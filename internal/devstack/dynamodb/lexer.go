package dynamodb

import "strings"

// tokenKind says what a token is; a symbol is its own text.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // an attribute name, function or keyword
	tokenName             // #placeholder
	tokenValue            // :placeholder
	tokenDigits           // a list index
	tokenSymbol           // punctuation, or a character no expression has
)

type token struct {
	kind       tokenKind
	text       string
	start, end int // of the source
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isPart(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' }

// tokenize splits an expression; it never fails, as the parser names whatever it
// did not expect. The last token is always tokenEnd.
func tokenize(source string) []token {
	tokens := make([]token, 0, len(source)/3+2)
	for pos := 0; pos < len(source); {
		c := source[pos]
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			pos++
			continue
		}
		kind, end := scanToken(source, pos)
		tokens = append(tokens, token{kind, source[pos:end], pos, end})
		pos = end
	}
	return append(tokens, token{tokenEnd, "<EOF>", len(source), len(source)})
}

func scanToken(source string, pos int) (tokenKind, int) {
	c := source[pos]
	switch {
	case isLetter(c):
		return tokenWord, scanWhile(source, pos+1, isPart)
	case isDigit(c):
		return tokenDigits, scanWhile(source, pos+1, isDigit)
	case c == '#' || c == ':':
		if end := scanWhile(source, pos+1, isPart); end > pos+1 {
			if c == '#' {
				return tokenName, end
			}
			return tokenValue, end
		}
	case strings.HasPrefix(source[pos:], "<>"), strings.HasPrefix(source[pos:], "<="), strings.HasPrefix(source[pos:], ">="):
		return tokenSymbol, pos + 2
	}
	return tokenSymbol, pos + 1
}

func scanWhile(source string, pos int, in func(byte) bool) int {
	for pos < len(source) && in(source[pos]) {
		pos++
	}
	return pos
}

// isPlaceholder checks a key of ExpressionAttributeNames or -Values.
func isPlaceholder(mark byte, s string) bool {
	return len(s) > 1 && s[0] == mark && scanWhile(s, 1, isPart) == len(s)
}
