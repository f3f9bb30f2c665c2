package lambda

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// lineBytesMax bounds what one line may hold in memory; a longer one is split.
const lineBytesMax = 1 << 20

// lineWriter passes whole lines on, each after a prefix and in one Write, so that
// lines of many sandboxes never mix.
type lineWriter struct {
	prefix string

	mu  sync.Mutex
	out io.Writer
	buf []byte
}

func newLineWriter(out io.Writer, prefix string) *lineWriter {
	return &lineWriter{out: out, prefix: prefix}
}

// Write implements io.Writer. It never fails: a log that cannot be written must
// not stop a function.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	for {
		end := bytes.IndexByte(w.buf, '\n')
		if end < 0 && len(w.buf) >= lineBytesMax {
			end = len(w.buf)
		}
		if end < 0 {
			return len(p), nil
		}
		w.emit(w.buf[:end])
		w.buf = w.buf[min(end+1, len(w.buf)):]
	}
}

// flush passes on a last line that has no end.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		w.emit(w.buf)
		w.buf = nil
	}
}

func (w *lineWriter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

func (w *lineWriter) emit(line []byte) {
	out := make([]byte, 0, len(w.prefix)+len(line)+1)
	out = append(append(append(out, w.prefix...), line...), '\n')
	_, _ = w.out.Write(out)
}
