package templatetest

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/dashboard"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/telemetry"
)

func board(t *testing.T) []dashboard.Widget {
	t.Helper()
	text, err := os.ReadFile(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	widgets, err := dashboard.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return widgets
}

// emitted lists what the code emits, as function/metric. A function that is deployed and is not one of the code's
// own has no metrics here.
func emitted() map[string]bool {
	all := map[string]bool{}
	for function, metrics := range lambdaedge.Metrics() {
		for _, m := range metrics {
			all[logicalID(function)+"/"+m.Name] = true
		}
	}
	return all
}

func logicalID(function string) string {
	return strings.ToUpper(function[:1]) + function[1:] + "Function"
}

// ours checks a metric of the code's own: it is emitted, by the function that its one dimension names.
func ours(emitted map[string]bool, name string, dimensions [][2]string) error {
	if len(dimensions) != 1 || dimensions[0][0] != "function" {
		return fmt.Errorf("%s has the dimensions %v, and is emitted by function", name, dimensions)
	}
	if of := strings.Trim(dimensions[0][1], "${}"); !emitted[of+"/"+name] {
		return fmt.Errorf("%s does not emit %s", of, name)
	}
	return nil
}

// services are the namespaces of AWS, with each set of dimensions that we use and what each names: a reference to a
// resource of a type, or one of some texts.
var services = map[string][]map[string]string{
	"AWS/Lambda":     {{"FunctionName": "AWS::Serverless::Function"}, {"FunctionName": "AWS::Serverless::Function", "Resource": "alias"}},
	"AWS/SQS":        {{"QueueName": "AWS::SQS::Queue"}},
	"AWS/ApiGateway": {{"ApiId": "AWS::ApiGatewayV2::Api"}},
	"AWS/DynamoDB": {
		{"TableName": "AWS::DynamoDB::Table"}, {"TableName": "AWS::DynamoDB::Table", "GlobalSecondaryIndexName": "index"},
		{"TableName": "AWS::DynamoDB::Table", "Operation": "operation"},
	},
}

// names are the metrics of AWS that we read. A name is not checked by anything but this list.
var names = map[string][]string{
	"AWS/Lambda":     {"Invocations", "Errors", "Throttles", "ConcurrentExecutions", "IteratorAge", "DestinationDeliveryFailures", "RecursiveInvocationsDropped"},
	"AWS/SQS":        {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"},
	"AWS/ApiGateway": {"Count", "4xx", "5xx", "Latency", "IntegrationLatency"},
	"AWS/DynamoDB":   {"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents", "SystemErrors"},
}

// theirs checks a metric of AWS's: its dimensions are a set that the service has, of resources that are in the template.
func theirs(t *testing.T, tmpl template, namespace, name string, dimensions [][2]string) error {
	t.Helper()
	if !slices.Contains(names[namespace], name) {
		return fmt.Errorf("%s has no metric %s that we know", namespace, name)
	}
	for _, set := range services[namespace] {
		if len(set) != len(dimensions) {
			continue
		}
		table := ""
		matches := 0
		for _, d := range dimensions {
			id, _, _ := strings.Cut(strings.Trim(d[1], "${}"), ".")
			switch kind := set[d[0]]; {
			case kind == "":
			case kind == "alias" && d[1] == "${"+table+"}:live",
				kind == "index" && slices.Contains(indexes(t, tmpl, table), d[1]),
				kind == "operation" && regexp.MustCompile("^[A-Z][A-Za-z]+$").MatchString(d[1]),
				strings.HasPrefix(kind, "AWS::") && strings.HasPrefix(d[1], "${") && tmpl.Resources[id].Type == kind:
				matches++
			}
			table = id
		}
		if matches == len(dimensions) {
			return nil
		}
	}
	return fmt.Errorf("%s %s has the dimensions %v, which are of no resource", namespace, name, dimensions)
}

func indexes(t *testing.T, tmpl template, table string) []string {
	t.Helper()
	all, _ := tmpl.Resources[table].Properties["GlobalSecondaryIndexes"].([]any)
	var named []string
	for _, index := range all {
		named = append(named, text(at(t, index, "IndexName")))
	}
	return named
}

// Proves M2: each line of the dashboard is of a metric that exists, of a resource that exists.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	tmpl, emits := load(t), emitted()
	for _, w := range board(t) {
		if w.Type == "metric" && len(w.Series) == 0 {
			t.Errorf("%s shows nothing", w.Title)
		}
		for _, s := range w.Series {
			var err error
			switch {
			case s.Expression != "":
				err = insight(tmpl, s.Expression)
			case s.Namespace == telemetry.Namespace:
				err = ours(emits, s.Name, s.Dimensions)
			default:
				err = theirs(t, tmpl, s.Namespace, s.Name, s.Dimensions)
			}
			if err != nil {
				t.Errorf("%s: %v", w.Title, err)
			}
		}
	}
}

// insight checks the one kind of expression that we use: the top contributor of a rule of the template.
func insight(tmpl template, expression string) error {
	m := regexp.MustCompile(`^INSIGHT_RULE_METRIC\('([^']+)', 'MaxContributorValue'\)$`).FindStringSubmatch(expression)
	for _, id := range tmpl.ofType("AWS::CloudWatch::InsightRule") {
		if m != nil && text(tmpl.Resources[id].Properties["RuleName"]) == m[1] {
			return nil
		}
	}
	return fmt.Errorf("the expression %s names no rule", expression)
}

// A planted fault of each kind is seen.
func TestAWrongLineIsSeen(t *testing.T) {
	tmpl, emits := load(t), emitted()
	of := func(pairs ...string) [][2]string {
		var all [][2]string
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, [2]string{pairs[i], pairs[i+1]})
		}
		return all
	}
	if err := ours(emits, "ack_ms", of("function", "${IngressFunction}")); err != nil {
		t.Error(err)
	}
	if err := theirs(t, tmpl, "AWS/DynamoDB", "WriteThrottleEvents", of("TableName", "${OutboxTable}", "GlobalSecondaryIndexName", "due")); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"a metric that nobody emits":          ours(emits, "ack_s", of("function", "${IngressFunction}")),
		"a metric of another function":        ours(emits, "ack_ms", of("function", "${RelayFunction}")),
		"a dimension that is not emitted":     ours(emits, "ack_ms", of("endpoint", "${IngressFunction}")),
		"a resource that is not there":        theirs(t, tmpl, "AWS/SQS", "ApproximateAgeOfOldestMessage", of("QueueName", "${Gone.QueueName}")),
		"a resource of another type":          theirs(t, tmpl, "AWS/Lambda", "Errors", of("FunctionName", "${EventQueue}")),
		"a name in place of a reference":      theirs(t, tmpl, "AWS/Lambda", "Errors", of("FunctionName", "IngressFunction")),
		"an index that the table has not":     theirs(t, tmpl, "AWS/DynamoDB", "WriteThrottleEvents", of("TableName", "${OutboxTable}", "GlobalSecondaryIndexName", "wake")),
		"a set of dimensions of nobody's":     theirs(t, tmpl, "AWS/Lambda", "Errors", of("ApiId", "${FrontDoor}")),
		"a metric that the service has not":   theirs(t, tmpl, "AWS/Lambda", "Mistakes", of("FunctionName", "${IngressFunction}")),
		"an expression of a rule of nobody's": insight(tmpl, "INSIGHT_RULE_METRIC('${AWS::StackName}-gone', 'MaxContributorValue')"),
	} {
		if err == nil {
			t.Errorf("%s was not seen", what)
		}
	}
}

// unshown are metrics that are on no chart, each with its reason.
var unshown = map[string]string{}

// Proves M1, M2: nothing is counted that nobody would ever look at.
func TestEveryMetricIsOnTheDashboard(t *testing.T) {
	shown := map[string]bool{}
	for _, w := range board(t) {
		for _, s := range w.Series {
			if s.Namespace == telemetry.Namespace {
				shown[strings.Trim(s.Dimensions[0][1], "${}")+"/"+s.Name] = true
			}
		}
	}
	for metric := range emitted() {
		if shown[metric] == (unshown[metric] != "") {
			t.Errorf("%s: on the dashboard %v, left out because of %q", metric, shown[metric], unshown[metric])
		}
	}
}

// Widgets stand beside each other: CloudWatch would move one that lies on another.
func TestNoWidgetLiesOnAnother(t *testing.T) {
	taken := map[[2]int]string{}
	for i, w := range board(t) {
		name := fmt.Sprintf("widget %d (%s)", i, w.Title)
		if w.X < 0 || w.Y < 0 || w.Width < 1 || w.Height < 1 || w.X+w.Width > dashboard.Columns {
			t.Errorf("%s stands outside of the %d columns: %d, %d, %d wide", name, dashboard.Columns, w.X, w.Y, w.Width)
		}
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s", name, other)
				}
				taken[[2]int{x, y}] = name
			}
		}
	}
}

// The state of every alarm is at the top, the one that wakes somebody first.
func TestTheDashboardShowsEveryAlarm(t *testing.T) {
	tmpl := load(t)
	want := append(tmpl.ofType("AWS::CloudWatch::Alarm"), tmpl.ofType("AWS::CloudWatch::CompositeAlarm")...)
	var got []string
	for _, w := range board(t) {
		for _, alarm := range w.Alarms {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(alarm, "${"), ".Arn}"))
		}
	}
	if len(got) == 0 || got[0] != "PromiseAtRisk" {
		t.Errorf("the first alarm is not PromiseAtRisk: %v", got)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alarms (-in the template +on the dashboard):\n%s", diff)
	}
}

// What the texts link is there.
func TestTheDashboardLinksRunbooks(t *testing.T) {
	links := 0
	for _, w := range board(t) {
		for _, m := range regexp.MustCompile(`\]\(\$\{RunbookBaseUrl\}/([^)]+)\)`).FindAllStringSubmatch(w.Markdown, -1) {
			links++
			if err := runbook(m[1]); err != nil {
				t.Error(err)
			}
		}
	}
	if links < 5 {
		t.Errorf("%d links to runbooks", links)
	}
}

// The picture in the pages is of this dashboard, and small enough for a page. `make dashboard-picture` draws it anew.
func TestThePictureIsOfThisDashboard(t *testing.T) {
	picture, err := os.ReadFile("../../docs/operate/dashboard.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(picture) > 200_000 {
		t.Errorf("it has %d bytes", len(picture))
	}
	var want, got []string
	for _, w := range board(t) {
		want = append(want, dashboard.Place(w))
	}
	for _, m := range regexp.MustCompile(`data-widget="([^"]*)"`).FindAllStringSubmatch(string(picture), -1) {
		got = append(got, html.UnescapeString(m[1]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("widgets (-in the template +in the picture):\n%s", diff)
	}
}
