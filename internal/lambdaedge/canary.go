package lambdaedge

import (
	"context"
	"strconv"

	"dakghar/internal/canary"
	"dakghar/internal/telemetry"
)

// Canary serves scheduled invocations with canaries.
type Canary struct {
	Canary *canary.Canary
	Log    *telemetry.Log
}

// Handle makes one pass, and writes a line for each endpoint and one for the run.
// The run's counts no missing canary even where there is no endpoint, so that
// silence means that nobody looked. Without the list of endpoints there is no such
// line: whether one is missing is not known then.
func (c *Canary) Handle(ctx context.Context) error {
	reports, err := c.Canary.Run(ctx)
	for _, r := range reports {
		c.Log.Write(canaryLine(r))
	}
	line := (&telemetry.Line{}).Str("decision", "canary_run").Err(err)
	if err == nil {
		line.Count("canary_endpoints", len(reports)).Count("canary_missing", 0)
	}
	c.Log.Write(line)
	return err
}

func canaryLine(r canary.Report) *telemetry.Line {
	line := &telemetry.Line{Provider: string(r.Provider)}
	line.Str("decision", string(r.Decision)).Str("endpoint_id", string(r.Endpoint)).Str("inbox_id", string(r.InboxID)).
		Str("status", string(r.Row)).Str("code", r.Code).Str("requests", strconv.Itoa(r.Sent)).Err(r.Err)
	if r.HTTP != 0 {
		line.Str("http_status", strconv.Itoa(r.HTTP))
	}
	if r.Sent > 0 {
		line.Count("canary_sent", 1)
	}
	missing := 0
	if r.Decision == canary.Missing {
		missing = 1
	} else {
		line.Count(string(r.Decision), 1)
	}
	line.Count("canary_missing", missing)
	if r.Decision == canary.Arrived {
		line.Millis("canary_ms", r.Took)
	}
	return line
}
