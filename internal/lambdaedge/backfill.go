package lambdaedge

import (
	"context"
	"fmt"

	"dakghar/internal/fault"
	"dakghar/internal/ingress"
	"dakghar/internal/telemetry"
)

// backfill compares what providers list with what was accepted, with what the
// reconciler's own pass left of the time. A provider that cannot be asked is
// counted and is no error of the function's: its row says when it is asked again.
func (s *Schedule) backfill(ctx context.Context) (err error) {
	if s.Backfill == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			// What a provider listed must not end the pass that all others need.
			err = fault.New(fault.Permanent, "backfill_panic", fmt.Errorf("a %T", v))
			s.Log.Write((&telemetry.Line{}).Str("decision", "backfill").Err(err).Count("backfill_failed", 1))
		}
	}()
	reports, err := s.Backfill.RunDue(ctx)
	for _, r := range reports {
		s.Log.Write(backfillLine(r))
	}
	return err
}

func backfillLine(r ingress.BackfillReport) *telemetry.Line {
	line := &telemetry.Line{Provider: string(r.Provider)}
	how := "backfill_under_way"
	switch {
	case !r.Ran:
		how = "backfill_taken"
	case r.Err != nil:
		how = "backfill_stopped"
	case r.Done:
		how = "backfill_done"
	}
	line.Str("decision", how).Str("endpoint_id", string(r.Endpoint)).Err(r.Err)
	if r.Err != nil {
		line.Str("code", fault.CodeOf(r.Err)).Str("fault", string(fault.KindOf(r.Err)))
		if r.Ran {
			line.Count("backfill_failed", 1)
		}
	}
	for _, c := range backfillCounts(r) {
		if c.n > 0 {
			line.Count("backfill_"+c.name, c.n)
		}
	}
	return line
}

// became is how many listed items something became of.
type became struct {
	name string
	n    int
}

func backfillCounts(r ingress.BackfillReport) []became {
	return []became{
		{"accepted", r.Counts.Accepted}, {"duplicate", r.Counts.Duplicate}, {"redelivered", r.Counts.Redelivered}, {"awaited", r.Counts.Awaited},
		{"refused", r.Counts.Refused}, {"unwanted", r.Counts.Unwanted}, {"unreadable", r.Counts.Unreadable},
	}
}
