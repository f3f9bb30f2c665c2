package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"dakghar/internal/operator"
)

// stamp is a time in JSON: RFC 3339 with milliseconds, null when zero.
type stamp time.Time

const stampFormat = "2006-01-02T15:04:05.000Z07:00"

func (s stamp) MarshalJSON() ([]byte, error) { //nolint:unparam // the interface is json.Marshaler's
	if time.Time(s).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + time.Time(s).UTC().Format(stampFormat) + `"`), nil
}

// word is a text in JSON, null when empty.
type word string

func (w word) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(w))
}

// printJSON writes one object as one line.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// idsAlone refuses two ways to print at once.
func (a *app) idsAlone(ids bool) error {
	if ids && a.json {
		return &operator.Refusal{Code: "usage", Usage: true, Problem: "--ids prints ids, --json whole objects: choose one"}
	}
	return nil
}

func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

// notef tells the person something beside the result, which a program reads.
func (a *app) notef(format string, args ...any) { _, _ = fmt.Fprintf(a.err, format, args...) }

// progressEvery is how often a person is told how far something has come.
const progressEvery = 2 * time.Second

// nowAndThen returns a function that lets something be told, with the time since
// the beginning, if nothing was for a while.
func (a *app) nowAndThen() func(tell func(after time.Duration)) {
	began := a.now()
	told := began
	return func(tell func(time.Duration)) {
		if now := a.now(); now.Sub(told) >= progressEvery {
			told = now
			tell(now.Sub(began).Round(time.Second))
		}
	}
}

// table writes rows in columns.
func (a *app) table(header string, rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if header != "" {
		_, _ = fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	}
	for _, row := range rows {
		for i := range row {
			row[i] = shown(row[i])
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// list is how one kind of thing is listed: in a table, as objects, or by id alone.
type list[T any] struct {
	header string
	row    func(T) []string
	view   func(T) any
	id     func(T) string // nil where ids cannot be asked for

	// How far was looked; a list without a limit is whole.
	limit int
	since time.Time
}

// within says how far a list looks.
func (l list[T]) within(limit int, since time.Time) list[T] {
	l.limit, l.since = limit, since
	return l
}

// print writes what is found, until the first failure.
func (l list[T]) print(a *app, all iter.Seq2[T, error], ids bool) error {
	var rows [][]string
	for item, err := range all {
		switch {
		case err != nil:
			return err
		case a.json:
			if err := a.printJSON(l.view(item)); err != nil {
				return err
			}
		case ids:
			a.printf("%s\n", l.id(item))
		default:
			rows = append(rows, l.row(item))
		}
	}
	if a.json || ids {
		return nil
	}
	if err := a.table(l.header, rows); err != nil || l.limit == 0 {
		return err
	}
	a.reach(len(rows), l.limit, l.since)
	return nil
}

// whole is a list that is there already.
func whole[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range all {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// filled leaves out the rows whose second column is empty.
func filled(rows [][]string) [][]string {
	return slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
}

// reach tells how far a list has looked: an empty one and a full one are both taken
// for all that there is.
func (a *app) reach(n, limit int, since time.Time) {
	switch n {
	case 0:
		a.notef("Nothing since %s matches; --since looks further back.\n", when(since))
	case limit:
		a.notef("The list ends at its --limit, %d; there may be more.\n", limit)
	}
}

// shown keeps a stored text from steering the terminal, and an empty one visible.
func shown(s string) string {
	switch {
	case s == "":
		return "-"
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return strconv.Quote(s)
	}
	return s
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampFormat)
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if e, ok := strings.CutSuffix(thing, "y"); ok {
		return strconv.Itoa(n) + " " + e + "ies"
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// steps writes what to do next.
func (a *app) steps(steps []operator.Step) string {
	var b strings.Builder
	for _, s := range steps {
		if s.Text != "" {
			b.WriteString("  " + s.Text + "\n")
		}
		if len(s.Command) > 0 {
			b.WriteString("      " + a.line(s.Command) + "\n")
		}
	}
	return b.String()
}

// line writes a command that works on the same stack.
func (a *app) line(command []string) string {
	words := append([]string{"dakghar"}, command...)
	if !slices.Contains(command, "--help") {
		words = append(words, a.target.flags()...)
	}
	for i, w := range words {
		if strings.ContainsFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,@+", r)
		}) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// printError tells what went wrong and what to do next.
func (a *app) printError(err error) {
	code, problem := "failed", err.Error()
	if !a.began {
		code = "usage"
	}
	var next []operator.Step
	if r, ok := errors.AsType[*operator.Refusal](err); ok {
		code, next = r.Code, r.Next
	}
	if !a.json {
		a.notef("dakghar: %s\n%s", problem, a.steps(next))
		return
	}
	lines := []string{}
	for _, s := range next {
		text := s.Text
		if len(s.Command) > 0 {
			text = strings.TrimSpace(text + " " + a.line(s.Command))
		}
		lines = append(lines, text)
	}
	enc := json.NewEncoder(a.err)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(struct {
		Error   string   `json:"error"`
		Message string   `json:"message"`
		Next    []string `json:"next"`
	}{code, problem, lines}); err != nil {
		a.notef("dakghar: %s\n", problem)
	}
}

// joined writes words one after the other.
func joined[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
