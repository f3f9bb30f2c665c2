package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dakghar/internal/fault"
)

// Answer is what a target said to one attempt.
type Answer struct {
	Status     int
	RetryAfter string // its header
	Body       []byte // its beginning
	Redirects  int    // that were followed
}

// ErrKeyMissing is a signing key or a credential that the secret store does not
// hold: an operator has to mend it.
var ErrKeyMissing error = fault.New(fault.Ours, "key_missing", nil)

// RetryAfter reads a partner's Retry-After: seconds, or a date. False where it
// says nothing usable. A time in the past is now.
func RetryAfter(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, false
	}
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}, false
	}
	if at.Before(now) {
		at = now
	}
	return at, true
}

// Printable returns the beginning of a partner's answer as it may be shown:
// at most [AnswerBytesMax] bytes, one line, what cannot be printed left out.
func Printable(answer []byte) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, string(answer[:min(len(answer), 4*AnswerBytesMax)]))
	if len(text) > AnswerBytesMax {
		text = strings.ToValidUTF8(text[:AnswerBytesMax], "")
	}
	return text
}
