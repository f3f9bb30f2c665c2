package sim

import (
	"bytes"
	"io"
	"sync"
	"testing"
)

// spy reads every log line of a world, and knows what must never be in one:
// secrets, signatures and the words of payloads. So each test that uses a world
// also proves S3 and M4.
type spy struct {
	mu      sync.Mutex
	next    io.Writer // may be nil
	log     bytes.Buffer
	planted []string
}

func (s *spy) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Write(p)
	if s.next == nil {
		return len(p), nil
	}
	return s.next.Write(p)
}

// plantedMin keeps apart what is a payload from what stands in any line.
const plantedMin = 16

// plant names a text that no log may hold.
func (s *spy) plant(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) >= plantedMin {
		s.planted = append(s.planted, text)
	}
}

func (s *spy) check(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.planted {
		if bytes.Contains(s.log.Bytes(), []byte(text)) {
			t.Errorf("a log line holds a secret, a signature or a payload: %q", text)
		}
	}
}
