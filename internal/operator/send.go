package operator

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"dakghar/internal/webhook"
)

// Sent is what became of one request.
type Sent struct {
	EventID webhook.EventID
	InboxID webhook.InboxID // empty where the answer names none
	// Result is accepted or duplicate, or the code of the refusal, or no_answer.
	Result string
	Status int // 0 without an answer
	// Latency is counted from the time at which the request was due, so that one
	// that had to wait for a slow one before it counts its waiting too.
	Latency time.Duration
	Err     error // of a request without an answer
	// Again is how often it was sent again, as a provider does: see [Traffic.Retries].
	Again int
}

// OK reports whether the request was acknowledged.
func (s Sent) OK() bool { return s.Status >= 200 && s.Status < 300 }

// unsure reports whether the event may not be stored: what a provider sends again.
func (s Sent) unsure() bool { return s.Status == 0 || s.Status >= 500 }

// results of requests.
const (
	resultAccepted  = "accepted"
	resultDuplicate = "duplicate"
	resultNone      = "no_answer"
	resultUnread    = "unread_answer"
)

// Summary is what became of all of them.
type Summary struct {
	Sent, Accepted, Duplicates int
	// Again is how often one of them was sent again.
	Again int
	// Refused counts the others by status; "no answer" for those without.
	Refused       map[string]int
	P50, P95, P99 time.Duration
	Max, Elapsed  time.Duration
}

// Run sends the traffic. each is called for every request, one call at a time,
// in the order of the answers. The error is the context's, or that of a sample
// that cannot be made; a refused request is a result, no error.
func (s *Sending) Run(ctx context.Context, each func(Sent)) (Summary, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began := s.operator.Now()
	jobs, results := make(chan job), make(chan Sent)

	go func() {
		defer close(jobs)
		if err := s.schedule(ctx, began, jobs); err != nil {
			stop(err)
		}
	}()
	var workers sync.WaitGroup
	for range s.traffic.Concurrency {
		workers.Go(func() {
			for j := range jobs {
				sent, err := s.request(ctx, j)
				if err != nil {
					stop(err)
					return
				}
				results <- sent
			}
		})
	}
	go func() { workers.Wait(); close(results) }()

	summary, latencies := Summary{Refused: map[string]int{}}, []time.Duration(nil)
	for sent := range results {
		summary.count(sent)
		latencies = append(latencies, sent.Latency)
		each(sent)
	}
	summary.measure(latencies, s.operator.Now().Sub(began))
	return summary, context.Cause(ctx)
}

// job is one request: the event it carries, and when it is due; zero for as soon
// as a worker is free.
type job struct {
	event int
	due   time.Time
}

// schedule hands out the requests in order, each at its time.
func (s *Sending) schedule(ctx context.Context, began time.Time, jobs chan<- job) error {
	for i, event := range s.traffic.order(s.operator.Mixed) {
		j := job{event: event}
		if s.traffic.Rate > 0 {
			j.due = began.Add(time.Duration(float64(i) / s.traffic.Rate * float64(time.Second)))
			if wait := j.due.Sub(s.operator.Now()); wait > 0 {
				if err := s.operator.Wait(ctx, wait); err != nil {
					return err
				}
			}
		}
		select {
		case jobs <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// resendPause is how long the first retry of a request waits; each later one waits
// twice as long as the one before.
const resendPause = 250 * time.Millisecond

// request makes and posts one event, and again where the answer leaves open whether
// it is stored.
func (s *Sending) request(ctx context.Context, j job) (Sent, error) {
	ev, err := s.sampler.event(j.event)
	if err != nil {
		return Sent{}, err
	}
	began := or(j.due, s.operator.Now())
	for again := 0; ; again++ {
		sent, err := s.post(ctx, ev)
		if err != nil {
			return Sent{}, err
		}
		sent.Latency, sent.Again = s.operator.Now().Sub(began), again
		if !sent.unsure() || again == s.traffic.Retries {
			return sent, nil
		}
		if err := s.operator.Wait(ctx, resendPause<<again); err != nil {
			return Sent{}, context.Cause(ctx)
		}
	}
}

// post signs and posts one event once.
func (s *Sending) post(ctx context.Context, ev sample) (Sent, error) {
	header, err := s.sampler.sign(ev, s.URL, s.key, or(s.traffic.At, s.operator.Now()))
	if err != nil {
		return Sent{}, err
	}
	sent := Sent{EventID: ev.eventID}
	status, answer, err := s.operator.Sender.Post(ctx, s.URL, header, ev.body)
	if err != nil {
		if ctx.Err() != nil {
			return Sent{}, context.Cause(ctx)
		}
		sent.Result, sent.Err = resultNone, err
		return sent, nil
	}
	sent.Status = status
	sent.read(answer)
	return sent, nil
}

// read takes the result from the front door's answer.
func (s *Sent) read(answer []byte) {
	var a struct {
		Result  string          `json:"result"`
		InboxID webhook.InboxID `json:"inbox_id"`
		Error   string          `json:"error"`
	}
	err := json.Unmarshal(answer, &a)
	switch {
	case s.OK() && len(answer) == 0: // a provider that wants an empty answer
		s.Result = resultAccepted
	case err != nil || a.Result == "" && a.Error == "":
		s.Result = resultUnread
	case s.OK():
		s.Result, s.InboxID = a.Result, a.InboxID
	default:
		s.Result = a.Error
	}
}

func (s *Summary) count(sent Sent) {
	s.Sent++
	s.Again += sent.Again
	switch {
	case !sent.OK():
		s.Refused[statusText(sent.Status)]++
	case sent.Result == resultDuplicate:
		s.Duplicates++
	default:
		s.Accepted++
	}
}

func (s *Summary) measure(latencies []time.Duration, elapsed time.Duration) {
	s.Elapsed = elapsed
	if len(latencies) == 0 {
		return
	}
	slices.Sort(latencies)
	at := func(percent int) time.Duration { return latencies[(len(latencies)*percent+99)/100-1] }
	s.P50, s.P95, s.P99, s.Max = at(50), at(95), at(99), latencies[len(latencies)-1]
}
