package templatetest

import (
	"os"
	"strings"
	"testing"

	"dakghar/internal/dispatcher"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/processor"
)

// The pages name every metric and every field: the page on logs itself, or those that it leads to for the codes of
// refusals and for what the reconciler finds. Proves M1, M2.
func TestThePagesNameEveryMetricAndField(t *testing.T) {
	pages := map[string]string{}
	for _, path := range []string{"operate/logs.md", "understand/answers.md", "understand/reconciler.md"} {
		page, err := os.ReadFile("../../docs/" + path)
		if err != nil {
			t.Fatal(err)
		}
		pages[path] = string(page)
	}
	named := func(path, name string) bool {
		return strings.Contains(pages[path], "`"+name+"`") || strings.Contains(pages[path], "`"+name+"_") || strings.Contains(pages[path], "_"+name+"`")
	}
	for function, metrics := range lambdaedge.Metrics() {
		for _, m := range metrics {
			_, part, _ := strings.Cut(m.Name, "_")
			kind, _, _ := strings.Cut(m.Name, "_")
			ok := named("operate/logs.md", m.Name)
			switch kind {
			case "refused":
				ok = ok || named("understand/answers.md", part)
			case "audit":
				ok = ok || named("understand/reconciler.md", part)
			case "reconciler", "backfill":
				ok = ok || strings.Contains(pages["operate/logs.md"], "`_"+part+"`")
			case "source", "endpoint":
				ok = ok || named("understand/answers.md", m.Name)
			}
			if !ok {
				t.Errorf("no page names the metric %s of %s", m.Name, function)
			}
		}
	}
	for function, decisions := range map[string][]string{"processor": processor.Decisions(), "dispatcher": dispatcher.Decisions()} {
		var rows string
		_, table, _ := strings.Cut(pages["operate/logs.md"], "\n## Decisions\n")
		table, _, _ = strings.Cut(table, "\n## ")
		for row := range strings.Lines(table) {
			if strings.HasPrefix(row, "| "+function) {
				rows += row
			}
		}
		for _, decision := range decisions {
			if !strings.Contains(rows, "`"+decision+"`") {
				t.Errorf("no row of %s names the decision %s", function, decision)
			}
		}
	}
	for function, fields := range lambdaedge.Fields() {
		for _, field := range fields {
			if !named("operate/logs.md", field) {
				t.Errorf("no page names the field %s of %s", field, function)
			}
		}
	}
}
