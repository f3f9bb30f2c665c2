// Package backoff turns an attempt number and a given chance into a delay. It
// draws no randomness itself, so a schedule can be printed and tested exactly.
package backoff

import "time"

// Schedule grows a delay from First, doubling, up to Max.
type Schedule struct {
	First, Max time.Duration
}

// Delay returns the wait after the given attempt, counted from 1. Jitter in
// [0,1) takes a point in the upper half of the span, never sooner than half of
// it, so that rows that failed together do not come back together.
func (s Schedule) Delay(attempt int, jitter float64) time.Duration {
	span := s.First
	for range attempt - 1 {
		if span >= s.Max/2 {
			span = s.Max
			break
		}
		span *= 2
	}
	return span/2 + time.Duration(jitter*float64(span/2))
}
