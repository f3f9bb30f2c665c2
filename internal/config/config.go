// Package config reads a function's settings from its environment, once, and
// reports all problems together. It knows names, defaults and bounds, and
// refuses relations between settings that would break a promise.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/backoff"
	"dakghar/internal/webhook"
)

// Reader collects settings and what is wrong with them.
type Reader struct {
	getenv   func(string) string
	problems []error
}

// From returns a reader over an environment.
func From(getenv func(string) string) *Reader { return &Reader{getenv: getenv} }

// Text returns a setting that must be there.
func (r *Reader) Text(name string) string {
	v := r.getenv(name)
	if v == "" {
		r.problems = append(r.problems, fmt.Errorf("%s is not set", name))
	}
	return v
}

// Int returns a whole number between low and high, or the default.
func (r *Reader) Int(name string, low, high, otherwise int) int {
	v := r.getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		r.problems = append(r.problems, fmt.Errorf("%s is %q, want a whole number from %d to %d", name, v, low, high))
		return otherwise
	}
	return n
}

// Word returns a setting, or the default.
func (r *Reader) Word(name, otherwise string) string {
	if v := r.getenv(name); v != "" {
		return v
	}
	return otherwise
}

// Days returns a number of days as a duration.
func (r *Reader) Days(name string, low, high, otherwise int) time.Duration {
	return time.Duration(r.Int(name, low, high, otherwise)) * 24 * time.Hour
}

// Require notes a problem unless a relation holds.
func (r *Reader) Require(holds bool, format string, args ...any) {
	if !holds {
		r.problems = append(r.problems, fmt.Errorf(format, args...))
	}
}

// Err returns all problems, nil when there are none.
func (r *Reader) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return fmt.Errorf("configuration: %w", errors.Join(r.problems...))
}

// Life holds how long things are kept.
type Life struct {
	Inbox, Body time.Duration
}

// ReadLife reads the retention settings. An identity must outlive every way in
// which its event can come again: the longest redelivery window of a provider
// is 90 days (Paddle's replays), and our own replay needs the body.
func ReadLife(r *Reader) Life {
	l := Life{Inbox: r.Days("INBOX_DAYS", 1, 3650, 400), Body: r.Days("BODY_DAYS", 7, 365, 30)}
	r.Require(l.Inbox >= 90*24*time.Hour, "INBOX_DAYS is %d, want at least 90: an identity must outlive every provider's redelivery window", l.Inbox/(24*time.Hour))
	r.Require(l.Inbox > l.Body, "INBOX_DAYS must be more than BODY_DAYS: a body must not outlive its event's identity")
	return l
}

// Work holds the numbers of the processing stages.
type Work struct {
	Lease       time.Duration
	AttemptsMax int
	Theirs      backoff.Schedule
	Ours        backoff.Schedule
	// Breaker is how long a process claims nothing while a service does not answer.
	Breaker backoff.Schedule
	// GapWindow is how long an event waits for those before it in its sequence.
	GapWindow time.Duration
}

// ReadWork reads the numbers of the processing stages. RETRY_PROFILE names the
// schedule between an event's attempts, ATTEMPTS_MAX bounds them otherwise than
// the profile does.
func ReadWork(r *Reader) Work {
	profile, ok := backoff.ProfileNamed(r.Word("RETRY_PROFILE", backoff.Standard))
	r.Require(ok, "RETRY_PROFILE is %q, want one of %s", r.getenv("RETRY_PROFILE"), strings.Join(backoff.ProfileNames(), ", "))
	return Work{
		Lease:       time.Duration(r.Int("LEASE_SECONDS", 20, 900, 60)) * time.Second,
		AttemptsMax: r.Int("ATTEMPTS_MAX", 1, 50, profile.Attempts),
		Theirs:      profile.Schedule,
		Ours:        backoff.Schedule{First: 2 * time.Second, Max: 5 * time.Minute},
		Breaker:     backoff.Schedule{First: 5 * time.Second, Max: time.Minute},
		GapWindow:   time.Duration(r.Int("GAP_MINUTES", 1, 24*60, 60)) * time.Minute,
	}
}

// Coarse bounds what one source address may ask of one ingress process before
// anything is verified: requests a second, and at once. A rate of 0 is no limit.
type Coarse struct {
	Rate, Burst int
}

// ReadCoarse reads the coarse limit. The default is far above what one process
// accepts, since a provider may send everything from one address.
func ReadCoarse(r *Reader) Coarse {
	return Coarse{Rate: r.Int("COARSE_RATE", 0, 1_000_000, 1000), Burst: r.Int("COARSE_BURST", 1, 1_000_000, 2000)}
}

// ReadProviderBase returns what stands in for the address of each provider's own
// API, nil for the real ones. PROVIDER_API_BASE is for the local stack: credentials
// go where it says, so it is refused where the services are AWS's own.
func ReadProviderBase(r *Reader) func(webhook.Provider) string {
	base := strings.TrimRight(r.getenv("PROVIDER_API_BASE"), "/")
	if base == "" {
		return nil
	}
	r.Require(r.getenv("AWS_ENDPOINT_URL") != "", "PROVIDER_API_BASE is set, and AWS_ENDPOINT_URL is not: providers have stand-ins on the local stack alone")
	return func(p webhook.Provider) string { return base + "/" + string(p) }
}

// AttemptSlack is what a delivery's lease has beyond its attempt: for recording
// the partner's answer, and for clocks that do not agree.
const AttemptSlack = 30 * time.Second

// Delivery holds the numbers of outbound delivery.
type Delivery struct {
	// Attempt bounds one attempt, its redirects included.
	Attempt time.Duration
	// Lease is at least Attempt and [AttemptSlack].
	Lease time.Duration
	Ours  backoff.Schedule // while we are at fault
	// Breaker is how long a process asks nothing of one partner that does not answer.
	Breaker backoff.Schedule
}

// ReadDelivery reads the numbers of outbound delivery.
func ReadDelivery(r *Reader) Delivery {
	d := Delivery{
		Attempt: time.Duration(r.Int("DELIVERY_ATTEMPT_SECONDS", 1, 40, 25)) * time.Second,
		Lease:   time.Duration(r.Int("DELIVERY_LEASE_SECONDS", 1, 900, 60)) * time.Second,
		Ours:    backoff.Schedule{First: 2 * time.Second, Max: 5 * time.Minute},
		Breaker: backoff.Schedule{First: 10 * time.Second, Max: 5 * time.Minute},
	}
	r.Require(d.Lease >= d.Attempt+AttemptSlack, "DELIVERY_LEASE_SECONDS is %d, want at least %d: a lease must outlast its attempt and the recording of its answer",
		d.Lease/time.Second, (d.Attempt+AttemptSlack)/time.Second)
	return d
}

// ReadOwnHosts reads OWN_HOSTS: the hosts of the stack's own front door, to which
// nothing is delivered, since it would come back. One that the stack does not have
// is empty.
func ReadOwnHosts(r *Reader) []string {
	hosts := slices.DeleteFunc(r.list("OWN_HOSTS"), func(host string) bool { return host == "" })
	r.Require(len(hosts) > 0, "OWN_HOSTS is empty, want the hosts of the stack's front door with commas between them")
	return hosts
}

// Sinks are the targets inside AWS that deliveries may go to.
type Sinks struct {
	Queues []string // URLs
	Buses  []string // ARNs
}

// ReadSinks reads the operator's lists of ARNs. A queue of the stack's own is
// refused: what is delivered to it would be taken for a wake-up.
func ReadSinks(r *Reader) Sinks {
	var s Sinks
	for _, arn := range r.list("SINK_QUEUE_ARNS") {
		url := r.queueURL(arn)
		r.Require(url != "", "SINK_QUEUE_ARNS has %q, want the ARNs of SQS queues with commas between them", arn)
		r.Require(url != r.getenv("DELIVERY_QUEUE_URL"), "SINK_QUEUE_ARNS has %q, a queue of this stack's own: its deliveries would be taken for wake-ups", arn)
		s.Queues = append(s.Queues, url)
	}
	for _, arn := range r.list("SINK_BUS_ARNS") {
		parts := strings.Split(arn, ":")
		r.Require(len(parts) == 6 && parts[2] == "events" && strings.HasPrefix(parts[5], "event-bus/"),
			"SINK_BUS_ARNS has %q, want the ARNs of EventBridge buses with commas between them", arn)
		s.Buses = append(s.Buses, arn)
	}
	return s
}

func (r *Reader) list(name string) []string {
	if r.getenv(name) == "" {
		return nil
	}
	return strings.Split(r.getenv(name), ",")
}

// queueURL is where SQS has a queue, empty for what is no queue's ARN.
// Source: https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
func (r *Reader) queueURL(arn string) string {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "sqs" || parts[3] == "" || parts[4] == "" || parts[5] == "" {
		return ""
	}
	base := strings.TrimRight(r.getenv("AWS_ENDPOINT_URL"), "/")
	if base == "" {
		suffix := "amazonaws.com"
		if parts[1] == "aws-cn" {
			suffix += ".cn"
		}
		base = "https://sqs." + parts[3] + "." + suffix
	}
	return base + "/" + parts[4] + "/" + parts[5]
}

// ReadLoopback reports whether requests may go to this machine itself, over http
// too. ALLOW_LOOPBACK is for the local stack: it is refused unless the services
// themselves are on this machine, and no function on AWS reaches a service there.
func ReadLoopback(r *Reader) bool {
	switch v := r.getenv("ALLOW_LOOPBACK"); v {
	case "", "false":
		return false
	case "true":
	default:
		r.Require(false, "ALLOW_LOOPBACK is %q, want true or false", v)
		return false
	}
	local := onThisMachine(r.getenv("AWS_ENDPOINT_URL"))
	r.Require(local, "ALLOW_LOOPBACK is set, and AWS_ENDPOINT_URL does not lead to this machine: partners are on this machine on the local stack alone")
	return local
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
