// Package telemetry writes one wide JSON line per record. The line is the log
// entry and, in CloudWatch's embedded metric format, the metrics as well, so
// that counting costs no call.
//
// It takes identifiers, decisions, codes and durations. It never takes a
// payload, a secret or a signature: there is no function that would accept one.
package telemetry

import (
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Namespace is the CloudWatch namespace of every metric.
const Namespace = "Dakghar"

// errorBytesMax bounds the text of an error on a line.
const errorBytesMax = 300

// Log writes lines of one function.
type Log struct {
	function string
	now      func() time.Time

	mu  sync.Mutex
	out io.Writer
	buf []byte
}

// New returns a log that writes the lines of a function to out.
func New(out io.Writer, function string, now func() time.Time) *Log {
	return &Log{out: out, function: function, now: now}
}

// Line is one record under construction.
type Line struct {
	fields  []field
	metrics []metric
	// Provider, when set, is a metric dimension beside the function.
	Provider string
}

type field struct{ name, value string }

type metric struct {
	name, unit string
	value      float64
}

// Str adds an identifier, decision or code; an empty one is left out.
func (l *Line) Str(name, value string) *Line {
	if value != "" {
		l.fields = append(l.fields, field{name, value})
	}
	return l
}

// Err adds the text of an error, cut to 300 bytes; nil is left out.
func (l *Line) Err(err error) *Line {
	if err == nil {
		return l
	}
	text := err.Error()
	return l.Str("error", text[:min(len(text), errorBytesMax)])
}

// Count adds a counted metric.
func (l *Line) Count(name string, n int) *Line {
	l.metrics = append(l.metrics, metric{name, "Count", float64(n)})
	return l
}

// Millis adds a duration metric in milliseconds.
func (l *Line) Millis(name string, d time.Duration) *Line {
	l.metrics = append(l.metrics, metric{name, "Milliseconds", float64(d.Microseconds()) / 1000})
	return l
}

// Seconds adds a metric in seconds.
func (l *Line) Seconds(name string, s float64) *Line {
	l.metrics = append(l.metrics, metric{name, "Seconds", s})
	return l
}

// Write writes the line. A log that cannot be written is nobody's reason to
// fail a request, so there is no error.
func (g *Log) Write(l *Line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := append(g.buf[:0], '{')
	if len(l.metrics) > 0 {
		b = appendDirective(b, l, g.now().UnixMilli())
	}
	b = appendString(b, "function", g.function)
	if l.Provider != "" {
		b = appendString(append(b, ','), "provider", l.Provider)
	}
	for _, f := range l.fields {
		b = appendString(append(b, ','), f.name, f.value)
	}
	for _, m := range l.metrics {
		b = append(appendQuoted(append(b, ','), m.name), ':')
		b = strconv.AppendFloat(b, m.value, 'f', -1, 64)
	}
	b = append(b, '}', '\n')
	_, _ = g.out.Write(b)
	g.buf = b
}

func appendDirective(b []byte, l *Line, at int64) []byte {
	b = append(b, `"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, at, 10)
	b = append(b, `,"CloudWatchMetrics":[{"Namespace":"`+Namespace+`","Dimensions":[["function"]`...)
	if l.Provider != "" {
		b = append(b, `,["function","provider"]`...)
	}
	b = append(b, `],"Metrics":[`...)
	for i, m := range l.metrics {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"Name":`...)
		b = appendQuoted(b, m.name)
		b = append(b, `,"Unit":"`+m.unit+`"}`...)
	}
	return append(b, `]}]},`...)
}

func appendString(b []byte, name, value string) []byte {
	return appendQuoted(append(appendQuoted(b, name), ':'), value)
}

func appendQuoted(b []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(b, s)
	if err != nil {
		// Bytes that are not UTF-8 are replaced; the rest of the text stands.
		return quoted
	}
	return quoted
}
