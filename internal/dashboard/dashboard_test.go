package dashboard_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/dashboard"
)

// template is a template with one dashboard of these widgets.
func template(widgets string) []byte {
	return fmt.Appendf(nil, `
Parameters:
  SlowMax: {Type: Number, Default: 400}
  Name: {Type: String, Default: a name}
Resources:
  Dashboard:
    Type: AWS::CloudWatch::Dashboard
    Properties:
      DashboardBody: !Sub |
        {"widgets":[%s]}
`, widgets)
}

const chart = `{"type":"metric","x":8,"y":1,"width":8,"height":6,"properties":{"title":"A chart","region":"${AWS::Region}","stat":"Sum","period":60,
        "stacked":true,"yAxis":{"left":{"min":0,"label":"ms","showUnits":false}},"annotations":{"horizontal":[{"label":"alarm","value":${SlowMax}}]},"metrics":[
        ["Dakghar", "a_ms", "function", "${AFunction}", {"stat":"p99","label":"p99"}], [".", "b", ".", "."], [{"expression":"INSIGHT_RULE_METRIC('x', 'y')","label":"c","id":"c"}],
        ["AWS/DynamoDB", "d", "TableName", "${T}", "GlobalSecondaryIndexName", "e"], [".", ".", ".", ".", ".", "f"]]}}`

// A metric is read as CloudWatch reads it: dots, options, expressions, and parameters that are numbers.
func TestADashboardIsReadAsCloudWatchReadsIt(t *testing.T) {
	got, err := dashboard.Read(template(`{"type":"text","x":0,"y":0,"width":24,"height":1,"properties":{"markdown":"# ${Name}"}},` +
		`{"type":"alarm","x":0,"y":1,"width":8,"height":6,"properties":{"title":"Alarms","alarms":["${One.Arn}"]}},` + chart))
	if err != nil {
		t.Fatal(err)
	}
	a, table := [][2]string{{"function", "${AFunction}"}}, func(index string) [][2]string {
		return [][2]string{{"TableName", "${T}"}, {"GlobalSecondaryIndexName", index}}
	}
	want := []dashboard.Widget{
		{Type: "text", Width: 24, Height: 1, Markdown: "# ${Name}"},
		{Type: "alarm", Y: 1, Width: 8, Height: 6, Title: "Alarms", Alarms: []string{"${One.Arn}"}},
		{Type: "metric", X: 8, Y: 1, Width: 8, Height: 6, Title: "A chart", Unit: "ms", Stacked: true, Limit: 400, Series: []dashboard.Series{
			{Namespace: "Dakghar", Name: "a_ms", Dimensions: a, Stat: "p99", Period: 60, Label: "p99"},
			{Namespace: "Dakghar", Name: "b", Dimensions: a, Stat: "Sum", Period: 60, Label: "b"},
			{Stat: "Sum", Period: 60, Label: "c", Expression: "INSIGHT_RULE_METRIC('x', 'y')"},
			{Namespace: "AWS/DynamoDB", Name: "d", Dimensions: table("e"), Stat: "Sum", Period: 60, Label: "d"},
			{Namespace: "AWS/DynamoDB", Name: "d", Dimensions: table("f"), Stat: "Sum", Period: 60, Label: "d"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("widgets (-want +got):\n%s", diff)
	}
}

// What would have to be guessed is refused.
func TestWhatIsNoDashboardIsRefused(t *testing.T) {
	of := func(metrics string) []byte {
		return template(`{"type":"metric","x":0,"y":0,"width":8,"height":6,"properties":{"title":"A chart","metrics":[` + metrics + `]}}`)
	}
	for what, text := range map[string][]byte{
		"no dashboard":              []byte("Resources: {Queue: {Type: AWS::SQS::Queue}}"),
		"a dot with nothing before": of(`[".","b","function","f"]`),
		"a name without a value":    of(`["Dakghar","b","function"]`),
		"options in the middle":     of(`["Dakghar",{"stat":"Sum"},"b"]`),
		"an option that is unknown": of(`["Dakghar","b",{"colour":"red"}]`),
		"another widget":            template(`{"type":"explorer","x":0,"y":0,"width":8,"height":6,"properties":{}}`),
		"half a widget":             template(`{"type":"text"`),
	} {
		if widgets, err := dashboard.Read(text); err == nil {
			t.Errorf("%s was read as %v", what, widgets)
		}
	}
}

// logged is a line as the local stack prints it.
func logged(at time.Time, function string, metrics string, fields string) string {
	var named []string
	for name := range strings.FieldsSeq(metrics) {
		named = append(named, fmt.Sprintf(`{"Name":%q,"Unit":"Count"}`, name))
	}
	return fmt.Sprintf("[%s] {\"_aws\":{\"Timestamp\":%d,\"CloudWatchMetrics\":[{\"Namespace\":\"Dakghar\",\"Dimensions\":[[\"function\"]],\"Metrics\":[%s]}]},\"function\":%q,%s}\n",
		function, at.UnixMilli(), strings.Join(named, ","), function, fields)
}

// run is a log of three minutes, with nothing in the second.
func run() string {
	began := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	log := "ready http://127.0.0.1:8080\n[AFunction] {\"function\":\"AFunction\",\"decision\":\"no metrics\"}\n"
	for i, ms := range []int{40, 10, 30, 20} {
		log += logged(began.Add(time.Duration(i)*time.Second), "AFunction", "a_ms b", fmt.Sprintf(`"a_ms":%d,"b":1`, ms))
	}
	return log + logged(began.Add(150*time.Second), "AFunction", "b", `"b":5`) + logged(began.Add(150*time.Second), "BFunction", "b", `"b":100`)
}

// Figures are those of the lines, by period and statistic; a period without any has none. Proves M2.
func TestFiguresAreThoseOfTheLines(t *testing.T) {
	t.Parallel()
	f, err := dashboard.ReadFigures(strings.NewReader(run()))
	if err != nil {
		t.Fatal(err)
	}
	if f.Lines != 6 || f.Last.Sub(f.First) != 150*time.Second {
		t.Errorf("%d lines of %s", f.Lines, f.Last.Sub(f.First))
	}
	series := func(name, stat string) dashboard.Series {
		return dashboard.Series{Namespace: "Dakghar", Name: name, Dimensions: [][2]string{{"function", "${AFunction}"}}, Stat: stat, Period: 60}
	}
	other := series("b", "Sum")
	other.Namespace = "AWS/Lambda"
	for _, tt := range []struct {
		of   dashboard.Series
		want map[int]float64
	}{
		{series("b", "Sum"), map[int]float64{0: 4, 3: 5}},
		{series("a_ms", "Maximum"), map[int]float64{0: 40}},
		{series("a_ms", "p50"), map[int]float64{0: 20}},
		{series("a_ms", "p99"), map[int]float64{0: 40}},
		{series("c", "Sum"), map[int]float64{}},
		{other, map[int]float64{}},
	} {
		got, err := f.Points(tt.of)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tt.of.Stat, tt.of.Name, diff)
		}
	}
	if points, err := f.Points(series("b", "Average")); err == nil {
		t.Errorf("a statistic that is not drawn came to %v", points)
	}
	if _, err := dashboard.ReadFigures(strings.NewReader(logged(f.First, "AFunction", "gone", `"b":1`))); err == nil {
		t.Error("a line without the metric that it declares was read")
	}
}

// The picture is XML, has every widget in its place, a line where there are figures and a word where there are none.
func TestThePictureShowsFiguresAndNothingElse(t *testing.T) {
	widgets, err := dashboard.Read(template(chart + `,{"type":"metric","x":0,"y":1,"width":8,"height":6,"properties":{"title":"Not <here>","stat":"Sum","period":60,
        "metrics":[["AWS/Lambda","Errors","FunctionName","${AFunction}"]]}}`))
	if err != nil {
		t.Fatal(err)
	}
	f, err := dashboard.ReadFigures(strings.NewReader(run()))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := dashboard.Draw(widgets, f)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, picture)
		}
	}
	for _, part := range []string{
		`data-widget="8,1 8x6 A chart: 5"`, "Not &lt;here&gt;", "counted by AWS, and not on one machine:", "6 log lines of 3m0s", "<polygon", "prefers-color-scheme: dark", ">alarm<",
	} {
		if !strings.Contains(string(picture), part) {
			t.Errorf("the picture has no %s:\n%s", part, picture)
		}
	}
	if n := strings.Count(string(picture), "<polygon"); n != 2 { // p99 and b, which stands on it
		t.Errorf("%d areas", n)
	}
}
