package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"testing"

	"dakghar/internal/lambdaedge"
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
	s.checkNames(t)
	for _, text := range s.planted {
		if bytes.Contains(s.log.Bytes(), []byte(text)) {
			t.Errorf("a log line holds a secret, a signature or a payload: %q", text)
		}
	}
}

// checkNames holds every line against the edge's own lists: dashboard, alarms,
// queries and pages are checked against those.
func (s *spy) checkNames(t testing.TB) {
	metrics, fields := lambdaedge.Metrics(), lambdaedge.Fields()
	for text := range bytes.Lines(s.log.Bytes()) {
		var line map[string]any
		if err := json.Unmarshal(text, &line); err != nil {
			t.Errorf("a line is no JSON: %v", err)
			continue
		}
		function, _ := line["function"].(string)
		units := unitsOf(text)
		for name, value := range line {
			_, number := value.(float64)
			listed := slices.Contains(fields[function], name)
			if number {
				listed = slices.Contains(metrics[function], lambdaedge.Metric{Name: name, Unit: units[name]})
			}
			if !listed {
				t.Errorf("%s writes %s (%s), which it does not list", function, name, units[name])
			}
		}
	}
}

// unitsOf reads the units of a line's metrics from its frame.
func unitsOf(line []byte) map[string]string {
	var frame struct {
		AWS struct {
			CloudWatchMetrics []struct{ Metrics []lambdaedge.Metric }
		} `json:"_aws"`
	}
	units := map[string]string{}
	if err := json.Unmarshal(line, &frame); err != nil {
		return units
	}
	for _, directive := range frame.AWS.CloudWatchMetrics {
		for _, m := range directive.Metrics {
			units[m.Name] = m.Unit
		}
	}
	return units
}
