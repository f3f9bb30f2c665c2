package reconciler

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/webhook"
)

// Rotations says of how many endpoints the key was changed and the provider has
// not signed with the new one yet, so that somebody has to finish it.
type Rotations struct {
	Known   bool // every endpoint was read
	Open    int
	OldestS float64 // seconds since the oldest of them began; 0 without one
}

// endpointsTime bounds what reading the endpoints takes of a run. It is enough for
// some ten thousand; beyond that there is no figure rather than no run.
const endpointsTime = 5 * time.Second

// lookAtEndpoints reads every endpoint's row once. A figure that lacks an endpoint
// would look like a good one, so there is none then.
func (r *Reconciler) lookAtEndpoints(ctx context.Context, report *Report) {
	reading, cancel := context.WithTimeout(ctx, endpointsTime)
	endpoints, err := r.endpoints(reading)
	err = unlessOver(reading, err)
	read := err == nil && reading.Err() == nil
	cancel()
	report.note(err)
	if !read {
		return
	}
	r.rotations(endpoints, report)
	r.silence(ctx, endpoints, report)
}

// rotations looks at each endpoint's list of keys, and at no key.
func (r *Reconciler) rotations(endpoints []webhook.Endpoint, report *Report) {
	now := r.Now()
	seen := Rotations{Known: true}
	for _, e := range endpoints {
		if since, open := e.RotationOpen(now); open {
			seen.Open++
			seen.OldestS = max(seen.OldestS, now.Sub(since).Seconds())
		}
	}
	report.Rotations = seen
}

func (r *Reconciler) endpoints(ctx context.Context) ([]webhook.Endpoint, error) {
	ids, err := r.Store.EndpointIDs(ctx)
	if err != nil {
		return nil, err
	}
	endpoints := make([]webhook.Endpoint, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(marksAtOnce)
	for i, id := range ids {
		group.Go(func() (err error) {
			if endpoints[i], _, err = r.Store.Endpoint(ctx, id); err != nil {
				return fmt.Errorf("endpoint %s: %w", id, err)
			}
			return nil
		})
	}
	return endpoints, group.Wait()
}
