package templatetest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/lambdaedge"
)

// Proves M2, M4: each saved query asks for fields that the lines of its functions have.
func TestQueriesReadFieldsThatExist(t *testing.T) {
	tmpl := load(t)
	ids := tmpl.ofType("AWS::Logs::QueryDefinition")
	if len(ids) < 9 {
		t.Errorf("%d queries", len(ids))
	}
	for _, id := range ids {
		p := tmpl.Resources[id].Properties
		known := map[string]bool{}
		for _, group := range list(p["LogGroupNames"]) {
			function := strings.ToLower(strings.TrimSuffix(group, "Logs"))
			if lambdaedge.Fields()[function] == nil || tmpl.Resources[group].Type != "AWS::Logs::LogGroup" {
				t.Errorf("%s reads the group %s", id, group)
			}
			for _, field := range lambdaedge.Fields()[function] {
				known[field] = true
			}
			for _, m := range lambdaedge.Metrics()[function] {
				known[m.Name] = true
			}
		}
		fields := fieldsOf(text(p["QueryString"]))
		if len(fields) == 0 {
			t.Errorf("%s asks for no field", id)
		}
		for _, field := range fields {
			if !known[field] {
				t.Errorf("%s asks for %s, which no line of its groups has", id, field)
			}
		}
	}
}

// fieldsOf are the words of a query that are neither the language's nor its own: texts, patterns, names behind "as".
func fieldsOf(query string) []string {
	query = regexp.MustCompile(`"[^"]*"|/[^/]*/`).ReplaceAllString(query, " ")
	language := []string{"fields", "filter", "stats", "sort", "by", "as", "in", "and", "or", "not", "like", "desc", "asc", "count", "pct", "max", "min", "bin", "ispresent", "limit"}
	var fields, own []string
	for _, m := range regexp.MustCompile(`\bas (\w+)`).FindAllStringSubmatch(query, -1) {
		own = append(own, m[1])
	}
	for _, word := range regexp.MustCompile(`@?\b[A-Za-z_]\w*`).FindAllString(query, -1) {
		if !strings.HasPrefix(word, "@") && !slices.Contains(language, word) && !slices.Contains(own, word) && !slices.Contains(fields, word) {
			fields = append(fields, word)
		}
	}
	return fields
}

func TestFieldsOfAQuery(t *testing.T) {
	query := "fields @timestamp, decision\n| filter ispresent(ack_ms) and cause like /^other_field/ and code in [\"a\", \"word\"]\n" +
		"| stats count(*) as requests, pct(ack_ms, 99) as p99 by endpoint_id, bin(1m)\n| sort requests desc"
	if diff := cmp.Diff([]string{"decision", "ack_ms", "cause", "code", "endpoint_id"}, fieldsOf(query)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// The page and the template ask the same: each query of one is in the other, word for word, but for signs that are not
// ASCII, which CloudFormation does not keep everywhere.
func TestQueriesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	_, after, _ := strings.Cut(string(page), "\n## Queries\n")
	queries, _, _ := strings.Cut(after, "\n## ")
	for _, m := range regexp.MustCompile("(?s)### ([^\n]+)\n.*?```text\n(.*?)\n```").FindAllStringSubmatch(queries, -1) {
		want[m[1]] = strings.ReplaceAll(m[2], "…", "...")
	}
	tmpl := load(t)
	for _, id := range tmpl.ofType("AWS::Logs::QueryDefinition") {
		p := tmpl.Resources[id].Properties
		got[strings.TrimPrefix(text(p["Name"]), "${AWS::StackName}/")] = text(p["QueryString"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queries (-in the page +in the template):\n%s", diff)
	}
}
