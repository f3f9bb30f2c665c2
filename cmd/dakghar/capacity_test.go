package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/capacity"
	"dakghar/internal/doctest"
)

func TestCapacityCommand(t *testing.T) {
	s := newShell(t)
	s.run("", "capacity", "--rps", "2000", "--body-kib", "10")
	s.run("", "capacity", "--rps", "2000", "--average-rps", "200", "--subscriptions", "2", "--retry-ratio", "0.05", "--copies", "0.1", "--regions", "2", "--endpoints", "500")
	s.run("", "capacity", "--rps", "500", "--body-kib", "200", "--compression", "1.5", "--only", "units,storage,calls,cost")
	s.run("", "capacity", "--rps", "100", "--json")
	s.run("", "capacity", "--rps", "0", "--body-kib", "2000", "--queue-batch", "11")
	s.run("", "capacity", "--only", "money", "--json")
	s.run("", "capacity", "--region-prices", "testdata/prices-short.json")
	s.run("", "capacity", "--region-prices", "testdata/none.json")
	s.wantGolden("capacity")
}

// Another region's file changes the bill and nothing else.
func TestARegionsPricesAreUsed(t *testing.T) {
	s := newShell(t)
	printed := s.quietly("", "capacity", "--print-prices")
	dear := strings.Replace(strings.Replace(printed.out, `"us-east-1"`, `"dear-1"`, 1), `"usd": 0.625`, `"usd": 6.25`, 1)
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(dear), 0o600); err != nil {
		t.Fatal(err)
	}
	writes := func(args ...string) (float64, string) {
		r := s.quietly("", append([]string{"capacity", "--json"}, args...)...)
		if r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.err)
		}
		other := ""
		cost := 0.0
		for _, o := range objects(t, r.out) {
			switch {
			case o["what"] == "DynamoDB writes":
				cost = o["usd_per_million"].(float64)
			case o["what"] != "total":
				line, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				other += string(line) + "\n"
			}
		}
		return cost, other
	}
	cheap, rest := writes()
	costly, same := writes("--region-prices", file)
	if costly != 131.25 || cheap != 13.13 && cheap != 13.12 {
		t.Errorf("a million events' writes cost %g and %g, want 13.125 and 131.25", cheap, costly)
	}
	if diff := cmp.Diff(rest, same); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
}

// The pages show what the command prints. -update writes them anew.
func TestThePagesShowWhatTheCommandPrints(t *testing.T) {
	for _, name := range []string{"capacity.md", "cost.md"} {
		path := filepath.Join("../../docs/understand", name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := string(raw)
		blocks, err := doctest.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, b := range blocks {
			line, ours := strings.CutPrefix(strings.TrimSpace(b.Text), "bin/dakghar ")
			if !b.Runs() || !ours {
				continue
			}
			ran++
			r := newShell(t).quietly("", strings.Fields(line)...)
			if r.code != exitDone {
				t.Errorf("%s:%d: exit %d: %s", name, b.Line, r.code, r.err)
			}
			if *update {
				page = strings.Replace(page, b.Text+"```\n\n```text\n"+b.Output, b.Text+"```\n\n```text\n"+r.out, 1)
				continue
			}
			if diff := cmp.Diff(b.Output, r.out); diff != "" {
				t.Errorf("%s:%d: the page (-) and the command (+):\n%s", name, b.Line, diff)
			}
		}
		if ran < 2 {
			t.Errorf("%s: %d commands were run", name, ran)
		}
		if *update {
			if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What capacity says of the template is what the template says.
func TestTheCalculatorKnowsTheTemplatesNumbers(t *testing.T) {
	raw, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	template := string(raw)
	d := capacity.Defaults()
	for parameter, want := range map[string]string{
		"RouteRatePerSecond": "2500", "RouteBurst": "4000", "BodyDays": `"30"`, "InboxDays": `"400"`, "LogDays": "30", "BodyInlineBytes": `"32768"`,
	} {
		_, rest, _ := strings.Cut(template, "\n  "+parameter+":\n")
		if _, value, _ := strings.Cut(rest, "Default: "); !strings.HasPrefix(value, want+"\n") {
			t.Errorf("%s is not %s by default any more", parameter, want)
		}
	}
	if d.BodyDays != 30 || d.InboxDays != 400 || d.LogDays != 30 || d.InlineKiB != 32 {
		t.Errorf("the defaults are %+v", d)
	}
	kinds := func(text string) int { return strings.Count(template, text) }
	// An alarm on an expression is billed for each metric in it; the one on a rule's has one.
	// Those of canaries are where canaries are.
	alarmMetrics := kinds("Type: AWS::CloudWatch::Alarm\n") - kinds("Type: AWS::CloudWatch::Alarm\n    Condition: HasCanary\n") - kinds("{Id: all, Expression: ") + kinds("MetricStat: ") + kinds(`Expression: !Sub "INSIGHT_RULE_METRIC`)
	for what, n := range map[string][2]int{
		"metrics of alarms": {alarmMetrics, capacity.AlarmMetrics}, "composite alarms": {kinds("Type: AWS::CloudWatch::CompositeAlarm\n"), capacity.CompositeAlarms},
		"dashboards": {kinds("Type: AWS::CloudWatch::Dashboard\n"), capacity.Dashboards}, "insight rules": {kinds("Type: AWS::CloudWatch::InsightRule\n"), capacity.InsightRules},
	} {
		if n[0] != n[1] {
			t.Errorf("the template has %d %s, the bill %d", n[0], what, n[1])
		}
	}
}
