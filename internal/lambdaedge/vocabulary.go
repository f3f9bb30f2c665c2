package lambdaedge

import (
	"slices"

	"dakghar/internal/canary"
	"dakghar/internal/dispatcher"
	"dakghar/internal/ingress"
	"dakghar/internal/processor"
	"dakghar/internal/reconciler"
	"dakghar/internal/signature"
)

// Metric is a metric that a function emits, in the namespace of the telemetry
// package, with the dimension function, and with function and provider where its
// line has a provider.
type Metric struct{ Name, Unit string }

// Units of metrics, as CloudWatch spells them.
const (
	count   = "Count"
	millis  = "Milliseconds"
	seconds = "Seconds"
)

// Metrics lists by function what it emits: what dashboard, alarms and pages may
// name, and all of it. A name that is not listed here is a fault of the edge that
// writes it; the tests hold both.
func Metrics() map[string][]Metric {
	return map[string][]Metric{
		"ingress":    ingressMetrics(),
		"relay":      join(of(millis, "relay_lag_ms"), of(count, "published", "relay_failed", "unmarked", "left_to_due_index", "unreadable")),
		"processor":  join(of(count, processor.Decisions()...), of(count, processor.GapExpired), workerMetrics(), of(millis, "age_ms")),
		"dispatcher": join(of(count, dispatcher.Decisions()...), workerMetrics(), of(count, "deliveries_created", "subscription_paused"), of(millis, "attempt_ms", "delivery_age_ms")),
		"reconciler": reconcilerMetrics(),
		"canary": join(
			of(count, texts(canary.Decisions())...), of(count, "canary_sent", "canary_endpoints"), of(millis, "canary_ms"),
		),
	}
}

func ingressMetrics() []Metric {
	all := of(millis, "ack_ms", "commit_ms")
	all = append(all, of(seconds, "secret_cache_age_s")...)
	for _, d := range ingress.Successes() {
		all = append(all, Metric{string(d), count})
	}
	for _, code := range ingress.RefusalCodes() {
		if code != ingress.CodeUnauthorized && code != ingress.CodeRateLimited { // their causes are counted
			all = append(all, Metric{"refused_" + code, count})
		}
	}
	for _, cause := range signature.Causes() {
		all = append(all, Metric{"refused_signature_" + string(cause), count})
	}
	return join(all, of(count, ingress.LimitCauses()...), of(count, "refused_"+ingress.CauseSource, "refused_event", "limiter_degraded", kmsFailed, "panic"))
}

// workerMetrics are those of a function that is woken by a queue, besides decisions.
func workerMetrics() []Metric { return of(count, "not_a_wake", "newer_wake", kmsFailed, "panic") }

func reconcilerMetrics() []Metric {
	all := of(seconds, "oldest_open_age_s", "oldest_due_age_s", "audit_age_s", "rotation_age_s", "silent_age_s")
	all = append(all, of(count, "looked", "heartbeat", "failed", "rotations_open", "silent_endpoints", "audit_compared", "audit_faults", "backfill_failed")...)
	for _, act := range reconciler.Acts() {
		all = append(all, Metric{"reconciler_" + act, count})
	}
	for _, kind := range reconciler.Kinds() {
		all = append(all, Metric{"audit_" + string(kind), count})
	}
	for _, became := range backfillCounts(ingress.BackfillReport{}) {
		all = append(all, Metric{"backfill_" + became.name, count})
	}
	return all
}

// Fields lists by function the fields of its lines that are not metrics.
func Fields() map[string][]string {
	always := []string{"_aws", "function", "error"}
	return map[string][]string{
		"ingress":   join(always, []string{"provider", "decision", "request_id", "cause", "endpoint_id", "inbox_id", "event_type", "matched_secret_version", "limiter_error", "source"}),
		"relay":     always,
		"processor": join(always, []string{"provider", "decision", "message_id", "inbox_id", "endpoint_id", "kind", "code", "fault", "attempt"}),
		"dispatcher": join(always, []string{
			"decision", "message_id", "topic", "effect_id", "delivery_id", "subscription_id", "event_type", "code", "attempt", "status",
		}),
		"canary":     join(always, []string{"provider", "decision", "endpoint_id", "inbox_id", "status", "code", "requests", "http_status"}),
		"reconciler": join(always, []string{"provider", "decision", "kind", "done", "inbox_id", "endpoint_id", "code", "fault", "last_event_at", "expect_every"}),
	}
}

func of(unit string, names ...string) []Metric {
	all := make([]Metric, len(names))
	for i, name := range names {
		all[i] = Metric{name, unit}
	}
	return all
}

func texts[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

func join[T any](lists ...[]T) []T { return slices.Concat(lists...) }
