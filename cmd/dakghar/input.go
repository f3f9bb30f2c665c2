package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"dakghar/internal/operator"
)

// secretFileMax bounds a secret's file: no provider's is longer.
const secretFileMax = 64 << 10

// readSecret reads a secret from a file, or from standard input for "-". One
// line end after it is an editor's, and is left out.
func (a *app) readSecret(file string) (operator.Secret, error) {
	in, name := a.in, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return operator.Secret{}, &operator.Refusal{
				Code: "secret_file", Problem: "the secret's file cannot be read", Err: err,
				Next: []operator.Step{{Text: `put the secret into a file that only you can read, or give it on standard input with --secret-file -`}},
			}
		}
		defer func() { _ = f.Close() }()
		in, name = f, file
	} else if isTerminal(a.in) {
		a.notef("Type the secret, then Enter and Ctrl-D.\n")
	}
	raw, err := io.ReadAll(io.LimitReader(in, secretFileMax+1))
	if err != nil {
		return operator.Secret{}, fmt.Errorf("read the secret from %s: %w", name, err)
	}
	if len(raw) > secretFileMax {
		return operator.Secret{}, &operator.Refusal{
			Code: "secret_file", Problem: fmt.Sprintf("%s has more than %d bytes: that is no signing secret", name, secretFileMax),
		}
	}
	trimmed := bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(trimmed) < len(raw) {
		a.notef("The line end after the secret in %s was left out.\n", name)
	}
	return operator.NewSecret(string(trimmed)), nil
}

func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// confirmed asks a question, and takes only "yes" for a yes.
func (a *app) confirmed(question string) bool {
	a.notef("%s Type yes to go on: ", question)
	line := make([]byte, 0, 8)
	var b [1]byte
	for len(line) < 64 {
		n, err := a.in.Read(b[:])
		if n == 0 {
			a.notef("\n") // nobody ended the line
			break
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
		if err != nil {
			break
		}
	}
	return strings.TrimSpace(string(line)) == "yes"
}

// agreed asks, unless it is sure, and refuses where that was no yes. done is what
// was not done then, and next how it goes without being asked, if not by --yes alone.
func (a *app) agreed(sure bool, question, done string, next ...operator.Step) error {
	if sure || a.confirmed(question) {
		return nil
	}
	if len(next) == 0 {
		next = []operator.Step{{Text: "to go on without being asked, add --yes"}}
	}
	return &operator.Refusal{Code: "not_confirmed", Problem: "nothing was " + done + ": that was no yes", Next: next}
}

// parseTime reads a moment: RFC 3339, or a duration from now ("-10m").
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, &operator.Refusal{
			Code: "usage", Usage: true,
			Problem: fmt.Sprintf("--at %q is no time: give one like 2026-03-01T12:00:00Z, or a duration from now like -10m", text),
		}
	}
	return t, nil
}
