package templatetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/dashboard"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/telemetry"
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
		metric, of := standsOn(t, p)
		got[id] = alarm{
			Metric: metric, Of: of,
			Statistic:  text(statistic), // of an expression, "null"
			Comparison: text(p["ComparisonOperator"]),
			Threshold:  p["Threshold"],
			Missing:    text(p["TreatMissingData"]),
		}
	}
	const above, below, good, bad = "GreaterThanThreshold", "LessThanThreshold", "notBreaching", "breaching"
	live := func(function string) string { return function + " ${" + function + "}:live" }
	visible := "AWS/SQS ApproximateNumberOfMessagesVisible"
	want := map[string]alarm{
		"AckSlow":                {"IF(n >= 20, slow, 0) of p99, SampleCount Dakghar ack_ms", "IngressFunction IngressFunction", "null", above, ref("AckMillisecondsMax"), good},
		"FrontDoorErrors":        {"AWS/ApiGateway 5xx", "FrontDoor", "Sum", above, 0.0, good},
		"IngressThrottled":       {"AWS/Lambda Throttles", "IngressFunction", "Sum", above, 0.0, good},
		"RelayLags":              {"AWS/Lambda IteratorAge", "RelayFunction", "Maximum", above, 60000.0, good},
		"RelayGaveUp":            {visible, "RelayFailures.QueueName", "Maximum", above, 0.0, good},
		"RelayFailureUnreported": {"AWS/Lambda DestinationDeliveryFailures", "RelayFunction", "Sum", above, 0.0, good},
		"EventsDead":             {visible, "EventDeadLetters.QueueName", "Maximum", above, 0.0, good},
		"EventsWait":             {"AWS/SQS ApproximateAgeOfOldestMessage", "EventQueue.QueueName", "Maximum", above, ref("QueueSecondsMax"), good},
		"OldestOpenWaits":        {"Dakghar oldest_open_age_s", "ReconcilerFunction", "Maximum", above, ref("OldestOpenSecondsMax"), good},
		"EventsFail":             {"Dakghar failed", "ProcessorFunction", "Sum", above, 0.0, good},
		"EventsGivenUp":          {"Dakghar failed", "ReconcilerFunction", "Sum", above, 0.0, good},
		"GapsExpire":             {"Dakghar gap_expired", "ProcessorFunction", "Sum", above, 0.0, good},
		"BreakerOpen":            {"Dakghar postponed", "ProcessorFunction", "Sum", above, 0.0, good},
		"DeliveriesWait":         {"AWS/SQS ApproximateAgeOfOldestMessage", "DeliveryQueue.QueueName", "Maximum", above, ref("QueueSecondsMax"), good},
		"DeliveriesDead":         {visible, "DeliveryDeadLetters.QueueName", "Maximum", above, 0.0, good},
		"DeliveriesDie":          {"Dakghar dead", "DispatcherFunction", "Sum", above, 0.0, good},
		"DeliveriesExpire":       {"Dakghar expired", "DispatcherFunction", "Sum", above, 0.0, good},
		"DeliveriesFaulted":      {"Dakghar faulted", "DispatcherFunction", "Sum", above, 0.0, good},
		"SubscriptionPaused":     {"Dakghar subscription_paused", "DispatcherFunction", "Sum", above, 0.0, good},
		"DifferencesFound":       {"Dakghar audit_faults", "ReconcilerFunction", "Sum", above, 0.0, good},
		"ComparisonLate":         {"Dakghar audit_age_s", "ReconcilerFunction", "Maximum", above, 172800.0, good},
		"IngressFails":           {"AWS/Lambda Errors", live("IngressFunction"), "Sum", above, 0.0, good},
		"RelayFails":             {"AWS/Lambda Errors", live("RelayFunction"), "Sum", above, 0.0, good},
		"ProcessorFails":         {"AWS/Lambda Errors", live("ProcessorFunction"), "Sum", above, 0.0, good},
		"DispatcherFails":        {"AWS/Lambda Errors", live("DispatcherFunction"), "Sum", above, 0.0, good},
		"CanaryMissing":          {"Dakghar canary_missing", "CanaryFunction", "Sum", above, 0.0, good},
		"CanarySilent":           {"Dakghar canary_missing", "CanaryFunction", "SampleCount", below, 1.0, bad},
		"SignaturesFail":         {"INSIGHT_RULE_METRIC('${AWS::StackName}-signature-failures', 'MaxContributorValue')", "", "null", above, ref("SignatureFailuresMax"), good},
		"AddressesRefused":       {"Dakghar refused_source_not_allowed", "IngressFunction", "Sum", above, ref("SourceRefusalsMax"), good},
		"LimitsUnasked":          {"Dakghar limiter_degraded", "IngressFunction", "Sum", above, 0.0, good},
		"SecretsAge":             {"Dakghar secret_cache_age_s", "IngressFunction", "Maximum", above, ref("SecretAgeSecondsMax"), good},
		"LoopsDropped":           {"SUM(METRICS()) of Sum AWS/Lambda RecursiveInvocationsDropped", "RelayFunction ProcessorFunction DispatcherFunction", "null", above, 0.0, good},
		"KeyFails":               {"SUM(METRICS()) of Sum Dakghar kms_failed", "IngressFunction ProcessorFunction DispatcherFunction", "null", above, 0.0, good},
		"EventsConflict":         {"Dakghar conflict", "IngressFunction", "Sum", above, 0.0, good},
		"RulesBroken":            {"SUM(METRICS()) of Sum Dakghar panic", "IngressFunction ProcessorFunction DispatcherFunction", "null", above, 0.0, good},
		"StoresDoNotAnswer":      {"SUM(METRICS()) of Sum Dakghar unavailable", "ProcessorFunction DispatcherFunction", "null", above, 0.0, good},
		"WritesThrottled": {
			"SUM(FILL(METRICS(), 0)) of Sum AWS/DynamoDB WriteThrottleEvents",
			"InboxTable InboxTable/recent InboxTable/failed OutboxTable OutboxTable/due BodyTable BusinessTable RegistryTable", "null", above, ref("ThrottlesMax"), good,
		},
		"DeliveryWritesThrottled": {
			"SUM(FILL(METRICS(), 0)) of Sum AWS/DynamoDB WriteThrottleEvents",
			"DeliveryTable DeliveryTable/wake DeliveryTable/recent DeliveryTable/dead", "null", above, ref("ThrottlesMax"), good,
		},
		"ReadsThrottled": {
			"SUM(FILL(METRICS(), 0)) of Sum AWS/DynamoDB ReadThrottleEvents",
			"InboxTable InboxTable/recent OutboxTable OutboxTable/due BodyTable BusinessTable RegistryTable DeliveryTable DeliveryTable/wake", "null", above, ref("ThrottlesMax"), good,
		},
		"BodiesExpire":      {"Dakghar reconciler_body_warning", "ReconcilerFunction", "Sum", above, 0.0, good},
		"RotationForgotten": {"age / 86400 of Maximum Dakghar rotation_age_s", "ReconcilerFunction", "null", above, ref("RotationDaysMax"), good},
		"ProviderSilent":    {"Dakghar silent_endpoints", "ReconcilerFunction", "Maximum", above, 0.0, good},
		"BackfillFails":     {"Dakghar backfill_failed", "ReconcilerFunction", "Sum", above, 0.0, good},
		"ReconcilerSilent":  {"AWS/Lambda Invocations", "ReconcilerFunction", "Sum", below, 1.0, bad},
		"ReconcilerFails":   {"AWS/Lambda Errors", "ReconcilerFunction", "Sum", above, 0.0, good},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

// standsOn says what an alarm looks at: one metric of one resource, or an expression and the resources of its metrics.
func standsOn(t *testing.T, p object) (metric, of string) {
	t.Helper()
	if p["Metrics"] == nil {
		var values []string
		for _, d := range p["Dimensions"].([]any) {
			values = append(values, text(at(t, d, "Value")))
		}
		return text(p["Namespace"]) + " " + text(p["MetricName"]), strings.Join(values, " ")
	}
	var resources, stats []string
	var seen string
	for _, m := range p["Metrics"].([]any) {
		if expression := m.(object)["Expression"]; expression != nil {
			metric = text(expression)
			continue
		}
		stat := at(t, m, "MetricStat")
		if name := text(at(t, stat, "Stat")); !slices.Contains(stats, name) {
			stats = append(stats, name)
		}
		seen = " of " + strings.Join(stats, ", ") + " " + text(at(t, stat, "Metric", "Namespace")) + " " + text(at(t, stat, "Metric", "MetricName"))
		var values []string
		for _, d := range at(t, stat, "Metric", "Dimensions").([]any) {
			values = append(values, text(at(t, d, "Value")))
		}
		resources = append(resources, strings.Join(values, "/"))
	}
	return metric + seen, strings.Join(resources, " ")
}

// alarmMetrics are all metrics that an alarm looks at, with their dimensions as the dashboard writes them.
func alarmMetrics(t *testing.T, p object) (all []dashboard.Series) {
	t.Helper()
	read := func(metric object) {
		s := dashboard.Series{Namespace: text(at(t, metric, "Namespace")), Name: text(at(t, metric, "MetricName"))}
		for _, d := range at(t, metric, "Dimensions").([]any) {
			value := text(at(t, d, "Value"))
			if of, function := at(t, d, "Value").(object); function && of["Fn::Sub"] == nil {
				value = "${" + value + "}"
			}
			s.Dimensions = append(s.Dimensions, [2]string{text(at(t, d, "Name")), value})
		}
		all = append(all, s)
	}
	if p["Metrics"] == nil {
		read(p)
		return all
	}
	for _, m := range p["Metrics"].([]any) {
		if stat, ok := m.(object)["MetricStat"].(object); ok {
			read(at(t, stat, "Metric").(object))
		}
	}
	return all
}

// Proves M3: an alarm on a metric that the code does not emit would never ring.
func TestAlarmsStandOnMetricsThatExist(t *testing.T) {
	tmpl, emits := load(t), emitted()
	for _, id := range tmpl.ofType("AWS::CloudWatch::Alarm") {
		metrics := alarmMetrics(t, tmpl.Resources[id].Properties)
		if len(metrics) > 10 {
			t.Errorf("%s looks at %d metrics, and CloudWatch takes ten", id, len(metrics))
		}
		for _, m := range metrics {
			err := theirs(t, tmpl, m.Namespace, m.Name, m.Dimensions)
			if m.Namespace == telemetry.Namespace {
				err = ours(emits, m.Name, m.Dimensions)
			}
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}

// The rule behind SignaturesFail counts by a field of ingress's lines, and filters by one.
func TestTheInsightRuleReadsFieldsThatExist(t *testing.T) {
	tmpl := load(t)
	for _, id := range tmpl.ofType("AWS::CloudWatch::InsightRule") {
		var rule struct {
			LogGroupNames []string
			Contribution  struct {
				Keys    []string
				Filters []struct{ Match string }
			}
		}
		if err := json.Unmarshal([]byte(text(tmpl.Resources[id].Properties["RuleBody"])), &rule); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if diff := cmp.Diff([]string{"${IngressLogs}"}, rule.LogGroupNames); diff != "" {
			t.Errorf("%s: log groups (-want +got):\n%s", id, diff)
		}
		fields := rule.Contribution.Keys
		for _, f := range rule.Contribution.Filters {
			fields = append(fields, f.Match)
		}
		for _, field := range fields {
			if !slices.Contains(lambdaedge.Fields()["ingress"], strings.TrimPrefix(field, "$.")) {
				t.Errorf("%s: ingress writes no field %s", id, field)
			}
		}
	}
}

// Of the alarms that are not in PromiseAtRisk, why nobody is woken for them.
var notUrgent = map[string]string{
	"SignaturesFail":          "a stranger can ring it with forgeries; a provider tries again for hours or days, and the endpoint's owner looks in the morning",
	"AddressesRefused":        "as SignaturesFail: a provider tries again for hours or days, and whoever keeps the list looks in the morning",
	"ProviderSilent":          "a provider with nothing to say looks the same, and it was silent for as long as its owner allows already",
	"LimitsUnasked":           "nobody is refused: each process lets in its own share",
	"RelayGaveUp":             "the reconciler publishes those rows within minutes; OldestOpenWaits rings where it does not",
	"RelayFailureUnreported":  "as RelayGaveUp",
	"StoresDoNotAnswer":       "work waits and drains by itself; OldestOpenWaits rings if it lasts",
	"BreakerOpen":             "as StoresDoNotAnswer; often a provider's outage, which nobody here can end",
	"RulesBroken":             "the lease frees the row, and a row that fails for good rings EventsFail",
	"DeliveriesWait":          "partners are told late, and nothing of ours is",
	"DeliveriesDead":          "a delivery wakes its worker by itself; the message is only a symptom",
	"DeliveriesDie":           "the partner answered so, and the row is kept for a replay",
	"DeliveriesExpire":        "as DeliveriesDie",
	"DeliveriesFaulted":       "nothing is lost until the delivery's deadline, two days by default",
	"DeliveryWritesThrottled": "deliveries wait, events do not",
	"ReadsThrottled":          "the SDK tries again; AckSlow or OldestOpenWaits rings where that is not enough",
	"SubscriptionPaused":      "five days of failure preceded it",
	"ComparisonLate":          "what is late is found by the scan all the same; this is the second look",
	"RotationForgotten":       "weeks are left",
	"LoopsDropped":            "rows wake their workers; DeliveriesWait or OldestOpenWaits rings where that is late",
	"IngressFails":            "senders get 500 and try again; FrontDoorErrors rings if it lasts",
	"RelayFails":              "its batches come again; RelayLags rings if it lasts",
	"ProcessorFails":          "its messages come again; EventsWait rings if it lasts",
	"DispatcherFails":         "its messages come again; DeliveriesWait tells if it lasts",
	"CanaryMissing":           "it wakes somebody by itself: the rule cannot name an alarm that is not in every stack",
	"CanarySilent":            "nothing is known to be wrong",
	"BackfillFails":           "it is a second way in; the first one has its own alarms",
}

// One page for all that means lost or late; every other alarm has a reason why it is not in it. Proves M3.
func TestOnePageForWhatIsLostOrLate(t *testing.T) {
	tmpl := load(t)
	rule := text(at(t, tmpl.Resources["PromiseAtRisk"].Properties, "AlarmRule"))
	in := map[string]bool{}
	for _, part := range strings.Split(rule, " OR ") {
		m := regexp.MustCompile(`^ALARM\("\$\{(\w+)\}"\)$`).FindStringSubmatch(part)
		if m == nil || tmpl.Resources[m[1]].Type != "AWS::CloudWatch::Alarm" || in[m[1]] {
			t.Fatalf("%q is not one alarm more of the template", part)
		}
		in[m[1]] = true
	}
	for _, id := range tmpl.ofType("AWS::CloudWatch::Alarm") {
		if in[id] == (notUrgent[id] != "") {
			t.Errorf("%s: in PromiseAtRisk %v, and left out because of %q", id, in[id], notUrgent[id])
		}
	}
	page, err := os.ReadFile("../../docs/operate/alarms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "\n### PromiseAtRisk\n")
	section, _, _ := strings.Cut(after, "\n- Look:")
	said := map[string]bool{}
	for _, id := range regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w+`).FindAllString(section, -1) {
		said[id] = true
	}
	if diff := cmp.Diff(in, said); diff != "" {
		t.Errorf("alarms in PromiseAtRisk (-in the template +in its runbook):\n%s", diff)
	}
	for id := range notUrgent {
		if tmpl.Resources[id].Type != "AWS::CloudWatch::Alarm" {
			t.Errorf("there is no alarm %s", id)
		}
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

// Both topics stand in for each other: an alarm that could reach somebody never reaches nobody.
func TestEveryAlarmReachesATopic(t *testing.T) {
	tmpl := load(t)
	either := func(condition, topic string, other any) any {
		return object{"Fn::If": []any{condition, []any{ref(topic)}, other}}
	}
	nobody := any(ref("AWS::NoValue"))
	notice := either("HasNoticeTopic", "NoticeTopicArn", either("HasAlarmTopic", "AlarmTopicArn", nobody))
	urgent := either("HasAlarmTopic", "AlarmTopicArn", either("HasNoticeTopic", "NoticeTopicArn", nobody))
	for _, id := range tmpl.ofType("AWS::CloudWatch::Alarm") {
		want := notice
		if id == "CanaryMissing" {
			want = urgent
		}
		if diff := cmp.Diff(want, tmpl.Resources[id].Properties["AlarmActions"]); diff != "" {
			t.Errorf("actions of %s (-want +got):\n%s", id, diff)
		}
	}
	for _, actions := range []string{"AlarmActions", "OKActions"} {
		if diff := cmp.Diff(urgent, tmpl.Resources["PromiseAtRisk"].Properties[actions]); diff != "" {
			t.Errorf("%s of PromiseAtRisk (-want +got):\n%s", actions, diff)
		}
	}
}

// runbook checks that a page below docs/operate, and a section of it, is there.
func runbook(link string) error {
	path, section, _ := strings.Cut(link, "#")
	page, err := os.ReadFile(filepath.Join("../../docs/operate", path))
	if err != nil {
		return err
	}
	if section == "" {
		return nil
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(page), -1) {
		if strings.ReplaceAll(strings.ToLower(m[1]), " ", "-") == section {
			return nil
		}
	}
	return fmt.Errorf("%s has no section %s", path, section)
}

// Proves M3: whoever is woken knows where to read on.
func TestEveryAlarmNamesItsRunbook(t *testing.T) {
	tmpl := load(t)
	for _, id := range append(tmpl.ofType("AWS::CloudWatch::Alarm"), tmpl.ofType("AWS::CloudWatch::CompositeAlarm")...) {
		description := text(tmpl.Resources[id].Properties["AlarmDescription"])
		what, link, _ := strings.Cut(description, " Runbook: ${RunbookBaseUrl}/")
		if want := "alarms.md#" + strings.ToLower(id); link != want || len(what) < 20 || len(description) > 512 {
			t.Errorf("%s says %q, want a sentence and the runbook %s", id, description, want)
		}
		if err := runbook(link); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// The runbook has no section of an alarm that is not there.
func TestTheRunbookHasNoOtherAlarm(t *testing.T) {
	tmpl := load(t)
	page, err := os.ReadFile("../../docs/operate/alarms.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(string(page), -1)
	for _, m := range sections {
		if kind := tmpl.Resources[m[1]].Type; kind != "AWS::CloudWatch::Alarm" && kind != "AWS::CloudWatch::CompositeAlarm" {
			t.Errorf("the section %s is about no alarm", m[1])
		}
	}
	if len(sections) < 30 {
		t.Errorf("%d sections: is the page read rightly?", len(sections))
	}
}
