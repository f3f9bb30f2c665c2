package templatetest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type alarm struct {
	Metric, Of, Statistic, Comparison string
	Threshold                         any
	Missing                           string
}

// Proves M3: alarms stand on lag, on durable state and on what a sender sees.
func TestAlarmsStandOnDurableState(t *testing.T) {
	tmpl := load(t)
	got := map[string]alarm{}
	for _, id := range tmpl.ofType("AWS::CloudWatch::Alarm") {
		p := tmpl.Resources[id].Properties
		statistic := p["Statistic"]
		if statistic == nil {
			statistic = p["ExtendedStatistic"]
		}
		var of []string
		for _, dimension := range p["Dimensions"].([]any) {
			of = append(of, text(at(t, dimension, "Value")))
		}
		got[id] = alarm{
			Metric:     text(p["Namespace"]) + " " + text(p["MetricName"]),
			Of:         strings.Join(of, " "),
			Statistic:  text(statistic),
			Comparison: text(p["ComparisonOperator"]),
			Threshold:  p["Threshold"],
			Missing:    text(p["TreatMissingData"]),
		}
	}
	const above, below, good, bad = "GreaterThanThreshold", "LessThanThreshold", "notBreaching", "breaching"
	live := func(function string) string { return function + " ${" + function + "}:live" }
	visible := "AWS/SQS ApproximateNumberOfMessagesVisible"
	want := map[string]alarm{
		"AckSlow":                {"Dakghar ack_ms", "IngressFunction", "p99", above, ref("AckMillisecondsMax"), good},
		"FrontDoorErrors":        {"AWS/ApiGateway 5xx", "FrontDoor", "Sum", above, 0.0, good},
		"IngressThrottled":       {"AWS/Lambda Throttles", "IngressFunction", "Sum", above, 0.0, good},
		"RelayLags":              {"AWS/Lambda IteratorAge", "RelayFunction", "Maximum", above, 60000.0, good},
		"RelayGaveUp":            {visible, "RelayFailures.QueueName", "Maximum", above, 0.0, good},
		"RelayFailureUnreported": {"AWS/Lambda DestinationDeliveryFailures", "RelayFunction", "Sum", above, 0.0, good},
		"EventsDead":             {visible, "EventDeadLetters.QueueName", "Maximum", above, 0.0, good},
		"EventsWait":             {"AWS/SQS ApproximateAgeOfOldestMessage", "EventQueue.QueueName", "Maximum", above, 300.0, good},
		"OldestOpenWaits":        {"Dakghar oldest_open_age_s", "ReconcilerFunction", "Maximum", above, 600.0, good},
		"EventsFail":             {"Dakghar failed", "ProcessorFunction", "Sum", above, 0.0, good},
		"EventsGivenUp":          {"Dakghar failed", "ReconcilerFunction", "Sum", above, 0.0, good},
		"GapsExpire":             {"Dakghar gap_expired", "ProcessorFunction", "Sum", above, 0.0, good},
		"BreakerOpen":            {"Dakghar postponed", "ProcessorFunction", "Sum", above, 0.0, good},
		"DeliveriesWait":         {"AWS/SQS ApproximateAgeOfOldestMessage", "DeliveryQueue.QueueName", "Maximum", above, 300.0, good},
		"DeliveriesDead":         {visible, "DeliveryDeadLetters.QueueName", "Maximum", above, 0.0, good},
		"DeliveriesDie":          {"Dakghar dead", "DispatcherFunction", "Sum", above, 0.0, good},
		"DeliveriesExpire":       {"Dakghar expired", "DispatcherFunction", "Sum", above, 0.0, good},
		"DeliveriesFaulted":      {"Dakghar faulted", "DispatcherFunction", "Sum", above, 0.0, good},
		"SubscriptionPaused":     {"Dakghar subscription_paused", "DispatcherFunction", "Sum", above, 0.0, good},
		"DifferencesFound":       {"Dakghar audit_faults", "ReconcilerFunction", "Sum", above, 0.0, good},
		"ComparisonLate":         {"Dakghar audit_age_s", "ReconcilerFunction", "Maximum", above, 172800.0, good},
		"ReconcilerSilent":       {"AWS/Lambda Invocations", "ReconcilerFunction", "Sum", below, 1.0, bad},
		"IngressFails":           {"AWS/Lambda Errors", live("IngressFunction"), "Sum", above, 0.0, good},
		"RelayFails":             {"AWS/Lambda Errors", live("RelayFunction"), "Sum", above, 0.0, good},
		"ProcessorFails":         {"AWS/Lambda Errors", live("ProcessorFunction"), "Sum", above, 0.0, good},
		"DispatcherFails":        {"AWS/Lambda Errors", live("DispatcherFunction"), "Sum", above, 0.0, good},
		"ReconcilerFails":        {"AWS/Lambda Errors", "ReconcilerFunction", "Sum", above, 0.0, good},
		"CanaryMissing":          {"Dakghar canary_missing", "CanaryFunction", "Sum", above, 0.0, good},
		"CanarySilent":           {"Dakghar canary_missing", "CanaryFunction", "SampleCount", below, 1.0, bad},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

// Every dead-letter queue and every failure destination has somebody looking at it.
func TestNoMessageDiesUnnoticed(t *testing.T) {
	tmpl := load(t)
	watched := map[string]bool{}
	for _, id := range tmpl.ofType("AWS::CloudWatch::Alarm") {
		p := tmpl.Resources[id].Properties
		if text(p["MetricName"]) == "ApproximateNumberOfMessagesVisible" {
			watched[text(at(t, p["Dimensions"].([]any)[0], "Value"))] = true
		}
	}
	for id, q := range queues(t) {
		if q.DeadLetters == "" && !watched[id+".QueueName"] {
			t.Errorf("%s is the end of the line and has no alarm", id)
		}
	}
}

func TestEveryAlarmReachesTheTopic(t *testing.T) {
	tmpl := load(t)
	want := object{"Fn::If": []any{"HasAlarmTopic", []any{ref("AlarmTopicArn")}, ref("AWS::NoValue")}}
	for _, id := range tmpl.ofType("AWS::CloudWatch::Alarm") {
		p := tmpl.Resources[id].Properties
		if diff := cmp.Diff(any(want), p["AlarmActions"]); diff != "" {
			t.Errorf("actions of %s (-want +got):\n%s", id, diff)
		}
		if text(p["AlarmDescription"]) == "" {
			t.Errorf("%s does not say what to do", id)
		}
	}
}
