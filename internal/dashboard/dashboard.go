// Package dashboard reads the dashboard out of template.yaml, so that a test can hold it against what the code emits and
// a picture can be drawn of it.
//
// It reads the body as CloudWatch does: a "." in a metric stands for what the metric before it has in the same place.
// References stay as they are in the template, ${IngressFunction}; parameters that are numbers have their defaults. It
// refuses what it would have to guess: a widget of another type, a metric that is no list, a property that it does not know.
package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/awslabs/goformation/v7/intrinsics"
)

// Columns is the width of a dashboard.
const Columns = 24

// Widget is one widget. What a type does not have is empty.
type Widget struct {
	Type                string // metric, text or alarm
	X, Y, Width, Height int
	Title               string
	Markdown            string   // of a text
	Alarms              []string // the alarms that are shown, as references
	Unit                string   // what the axis says
	Stacked             bool
	Limit               float64 // a horizontal line, 0 for none
	Series              []Series
}

// Series is one line of a chart: a metric, or an expression.
type Series struct {
	Namespace, Name string
	Dimensions      [][2]string // in their order
	Stat            string
	Period          int    // seconds
	Label           string // what the legend says
	Expression      string // empty for a metric
}

// Read returns the widgets of the template's dashboard, in their order. It is not for two goroutines at once: the library
// that reads the template keeps state in package variables.
func Read(template []byte) ([]Widget, error) {
	body, err := bodyOf(template)
	if err != nil {
		return nil, err
	}
	var board struct {
		Start          string
		PeriodOverride string
		Widgets        []struct {
			Type                string
			X, Y, Width, Height int
			Properties          json.RawMessage
		}
	}
	if err := strict(body, &board); err != nil {
		return nil, err
	}
	var widgets []Widget
	for _, w := range board.Widgets {
		widget := Widget{Type: w.Type, X: w.X, Y: w.Y, Width: w.Width, Height: w.Height}
		if err := widget.read(w.Properties); err != nil {
			return nil, fmt.Errorf("the widget at %d, %d: %w", w.X, w.Y, err)
		}
		widgets = append(widgets, widget)
	}
	return widgets, nil
}

// bodyOf is the text of the one dashboard, with numbers in place of parameters.
func bodyOf(template []byte) ([]byte, error) {
	data, err := intrinsics.ProcessYAML(template, &intrinsics.ProcessorOptions{NoProcess: true})
	if err != nil {
		return nil, err
	}
	var t struct {
		Parameters map[string]struct {
			Type    string
			Default any
		}
		Resources map[string]struct {
			Type       string
			Properties json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	var body struct{ DashboardBody substitution }
	for _, r := range t.Resources {
		if r.Type != "AWS::CloudWatch::Dashboard" {
			continue
		}
		if body.DashboardBody != "" {
			return nil, errors.New("there are two dashboards")
		}
		if err := json.Unmarshal(r.Properties, &body); err != nil {
			return nil, err
		}
	}
	if body.DashboardBody == "" {
		return nil, errors.New("there is no dashboard")
	}
	return reference.ReplaceAllFunc([]byte(body.DashboardBody), func(whole []byte) []byte {
		if p := t.Parameters[string(whole[2:len(whole)-1])]; p.Type == "Number" {
			return fmt.Append(nil, p.Default)
		}
		return whole
	}), nil
}

// substitution is the text of a Fn::Sub. A part of it that stands under a condition is taken as where the condition holds,
// so that all there can be is seen.
type substitution string

// UnmarshalJSON reads a text, or a text with its conditional parts.
func (s *substitution) UnmarshalJSON(data []byte) error {
	var of struct {
		Sub json.RawMessage `json:"Fn::Sub"`
	}
	if err := strict(data, &of); err != nil {
		return err
	}
	var plain string
	if json.Unmarshal(of.Sub, &plain) == nil {
		*s = substitution(plain)
		return nil
	}
	var pair [2]json.RawMessage
	var parts map[string]struct {
		If []json.RawMessage `json:"Fn::If"`
	}
	if err := errors.Join(json.Unmarshal(of.Sub, &pair), json.Unmarshal(pair[0], &plain), strict(pair[1], &parts)); err != nil {
		return err
	}
	for name, part := range parts {
		var inner substitution
		if len(part.If) != 3 || string(part.If[2]) != `""` {
			return fmt.Errorf("the part %s is no condition with nothing as its other side", name)
		}
		if err := json.Unmarshal(part.If[1], &inner); err != nil {
			return fmt.Errorf("the part %s: %w", name, err)
		}
		plain = strings.ReplaceAll(plain, "${"+name+"}", string(inner))
	}
	*s = substitution(plain)
	return nil
}

var reference = regexp.MustCompile(`\$\{[A-Za-z0-9:.]+\}`)

func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// properties are those of a metric widget.
type properties struct {
	Title, Region, View, Stat string
	Stacked                   bool
	Period                    int
	YAxis                     struct {
		Left struct {
			Min       float64
			Label     string
			ShowUnits bool
		}
	}
	Annotations struct {
		Horizontal []struct {
			Label string
			Value float64
		}
	}
	Metrics [][]json.RawMessage
}

func (w *Widget) read(data []byte) error {
	switch w.Type {
	case "text":
		var p struct{ Markdown string }
		err := strict(data, &p)
		w.Markdown = p.Markdown
		return err
	case "alarm":
		var p struct {
			Title  string
			Alarms []string
		}
		err := strict(data, &p)
		w.Title, w.Alarms = p.Title, p.Alarms
		return err
	case "metric":
		var p properties
		if err := strict(data, &p); err != nil {
			return err
		}
		return w.chart(p)
	}
	return fmt.Errorf("it is a %q", w.Type)
}

func (w *Widget) chart(p properties) error {
	w.Title, w.Stacked, w.Unit = p.Title, p.Stacked, p.YAxis.Left.Label
	for _, line := range p.Annotations.Horizontal {
		w.Limit = line.Value
	}
	var before []string
	for _, row := range p.Metrics {
		s := Series{Stat: p.Stat, Period: p.Period}
		texts, err := s.read(row)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Title, err)
		}
		if s.Expression != "" {
			w.Series = append(w.Series, s)
			continue
		}
		for i, text := range texts {
			if text == "." {
				if i >= len(before) {
					return fmt.Errorf("%s: there is nothing before the dot in %q", p.Title, texts)
				}
				texts[i] = before[i]
			}
		}
		if len(texts) < 2 || len(texts)%2 != 0 {
			return fmt.Errorf("%s: %q is no metric", p.Title, texts)
		}
		before = texts
		s.Namespace, s.Name = texts[0], texts[1]
		for i := 2; i < len(texts); i += 2 {
			s.Dimensions = append(s.Dimensions, [2]string{texts[i], texts[i+1]})
		}
		if s.Label == "" {
			s.Label = s.Name
		}
		w.Series = append(w.Series, s)
	}
	return nil
}

// read takes the options at the end of a row, and returns the texts before them.
func (s *Series) read(row []json.RawMessage) ([]string, error) {
	var texts []string
	for i, cell := range row {
		if text, err := strconv.Unquote(string(cell)); err == nil {
			texts = append(texts, text)
			continue
		}
		var options struct{ Stat, Label, Expression, ID string }
		if err := strict(cell, &options); err != nil || i != len(row)-1 {
			return nil, fmt.Errorf("%s is neither a text nor the options at the end: %w", cell, err)
		}
		s.Label, s.Expression = options.Label, options.Expression
		if options.Stat != "" {
			s.Stat = options.Stat
		}
	}
	return texts, nil
}
