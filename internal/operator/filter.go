package operator

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"dakghar/internal/webhook"
)

// SinceMax bounds how far back a list reaches: each day is 16 index reads.
const SinceMax = 400 * 24 * time.Hour

// Bounds of a list over all endpoints: how many it merges, and how many of them
// are looked into at once.
const (
	endpointsMax = 200
	headsAtOnce  = 8
)

// clockAhead is how far the front door's clock may be ahead of the operator's: a
// list without an end reaches that far into the future.
const clockAhead = 5 * time.Minute

// noStatus refuses a state that is none of those that there are.
func noStatus(s webhook.Status, known []webhook.Status) error {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	return misuse(fmt.Sprintf("--status %q is none of %s", s, strings.Join(words, ", ")))
}

// settle completes a filter, and refuses what makes no sense: an end without one
// becomes now, a key version's beginning becomes the version.
func (o *Operator) settle(ctx context.Context, f webhook.Filter) (webhook.Filter, error) {
	now := o.Now()
	if f.Until.IsZero() {
		f.Until = now.Add(clockAhead)
	}
	for _, s := range f.Statuses {
		if !slices.Contains(webhook.Statuses(), s) {
			return f, noStatus(s, webhook.Statuses())
		}
	}
	switch {
	case !f.Since.Before(f.Until):
		return f, misuse("--since is before now, and before --until")
	case f.Since.Before(now.Add(-SinceMax)):
		return f, misuse(fmt.Sprintf("--since reaches back %.0fh at most", SinceMax.Hours()))
	case f.MatchedVersion != "" && f.Endpoint == "":
		return f, misuse("--matched-secret-version goes with --endpoint, whose version it is")
	case f.Endpoint == "":
		return f, nil
	}
	e, err := o.endpoint(ctx, f.Endpoint)
	if err == nil && f.MatchedVersion != "" && f.MatchedVersion != webhook.Backfilled {
		var key Key
		key, err = resolve(e, keysOf(e, now), string(f.MatchedVersion))
		f.MatchedVersion = key.Version
	}
	return f, err
}

// matches reports whether a row passes a filter's words. The bounds in time are
// the list's.
func (o *Operator) matches(f webhook.Filter, row webhook.Inbox) bool {
	switch {
	case f.Endpoint != "" && row.Endpoint != f.Endpoint, !f.HasStatus(row.Status),
		f.MatchedVersion != "" && row.MatchedVersion != f.MatchedVersion,
		f.Object != "" && row.ObjectID != f.Object,
		f.Cause != "" && !causeIs(row.LastError, f.Cause):
		return false
	}
	return f.Kind == "" || f.Kind == string(row.EventType) || f.Kind == string(o.Kind(row))
}

// causeIs reports whether a last error begins with a code, as a whole word.
func causeIs(last, code string) bool {
	rest, ok := strings.CutPrefix(last, code)
	return ok && (rest == "" || !strings.ContainsAny(rest[:1], "abcdefghijklmnopqrstuvwxyz0123456789_"))
}

// Kind returns our name of what an event means, empty where its adapter does not
// know the type.
func (o *Operator) Kind(row webhook.Inbox) webhook.Kind {
	a, ok := o.Providers.Lookup(row.Provider)
	if !ok || row.Canary() { // which may look like a kind where types are a pattern
		return ""
	}
	k, _ := a.Kind(row.EventType)
	return k.Name
}

// list yields the rows that match a settled filter, newest first: by the time of
// receipt, or for failed ones alone by the time of their failing.
func (o *Operator) list(ctx context.Context, f webhook.Filter) (iter.Seq2[webhook.Inbox, error], error) {
	rows := o.Inbox.RecentInbox(ctx, f.Endpoint, f.Since, f.Until)
	switch {
	case byFailing(f):
		rows = o.Inbox.FailedInbox(ctx, f.Since, f.Until)
	case f.Endpoint == "":
		ids, err := o.Registry.EndpointIDs(ctx)
		if err != nil {
			return nil, unreachable("the registry", err)
		}
		if len(ids) > endpointsMax {
			return nil, misuse(fmt.Sprintf("there are %d endpoints, and at most %d are listed together: say which with --endpoint", len(ids), endpointsMax),
				run("list the endpoints:", "endpoint", "list"))
		}
		rows = o.merged(ctx, ids, f)
	}
	return listed("the inbox", rows, func(row webhook.Inbox) bool { return o.matches(f, row) }), nil
}

// byFailing reports whether a filter's list is that of failed events, whose times
// are those of their failing.
func byFailing(f webhook.Filter) bool {
	return slices.Equal(f.Statuses, []webhook.Status{webhook.Failed})
}

// at returns a row's time in the list of a filter.
func at(f webhook.Filter, row webhook.Inbox) time.Time {
	if byFailing(f) {
		return row.ProcessedAt
	}
	return row.ReceivedAt
}

// merged yields the events of several endpoints, newest first.
func (o *Operator) merged(ctx context.Context, ids []webhook.EndpointID, f webhook.Filter) iter.Seq2[webhook.Inbox, error] {
	return func(yield func(webhook.Inbox, error) bool) {
		heads := make([]*head, len(ids))
		var wg sync.WaitGroup
		slots := make(chan struct{}, headsAtOnce)
		for i, id := range ids {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				heads[i] = newHead(o.Inbox.RecentInbox(ctx, id, f.Since, f.Until))
			})
		}
		wg.Wait()
		defer func() {
			for _, h := range heads {
				h.stop()
			}
		}()
		for {
			newest := -1
			for i, h := range heads {
				switch {
				case h.err != nil:
					yield(webhook.Inbox{}, h.err)
					return
				case h.there && (newest < 0 || h.row.ReceivedAt.After(heads[newest].row.ReceivedAt)):
					newest = i
				}
			}
			if newest < 0 || !yield(heads[newest].row, nil) {
				return
			}
			heads[newest].step()
		}
	}
}

// head is a list with its first row taken out.
type head struct {
	row   webhook.Inbox
	err   error
	there bool
	next  func() (webhook.Inbox, error, bool)
	stop  func()
}

func newHead(rows iter.Seq2[webhook.Inbox, error]) *head {
	h := &head{}
	h.next, h.stop = iter.Pull2(rows)
	h.step()
	return h
}

func (h *head) step() { h.row, h.err, h.there = h.next() }
