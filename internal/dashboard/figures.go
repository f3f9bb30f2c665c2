package dashboard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Figures are the metrics of a run, as its log lines have them.
type Figures struct {
	// First and Last are when the first and the last line was written.
	First, Last time.Time
	Lines       int
	values      map[[2]string][]value // by function and metric
}

type value struct {
	at time.Time
	of float64
}

// lineBytesMax bounds one log line.
const lineBytesMax = 1 << 20

// ReadFigures reads log lines, whatever stands before each line's JSON. Lines that hold no metrics are passed over.
func ReadFigures(log io.Reader) (*Figures, error) {
	f := &Figures{values: map[[2]string][]value{}}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		_, text, found := strings.Cut(lines.Text(), "{")
		if !found {
			continue
		}
		if err := f.line("{" + text); err != nil {
			return nil, err
		}
	}
	return f, lines.Err()
}

func (f *Figures) line(text string) error {
	var frame struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
		Function string
	}
	var fields map[string]any
	// What else a program prints may have a brace, too.
	if !json.Valid([]byte(text)) {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &frame); err != nil {
		return err
	}
	if len(frame.AWS.CloudWatchMetrics) == 0 {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return err
	}
	at := time.UnixMilli(frame.AWS.Timestamp).UTC()
	if f.Lines == 0 || at.Before(f.First) {
		f.First = at
	}
	if at.After(f.Last) {
		f.Last = at
	}
	f.Lines++
	for _, m := range frame.AWS.CloudWatchMetrics[0].Metrics {
		of, ok := fields[m.Name].(float64)
		if !ok {
			return fmt.Errorf("a line of %s declares %s and does not have it", frame.Function, m.Name)
		}
		key := [2]string{frame.Function, m.Name}
		f.values[key] = append(f.values[key], value{at, of})
	}
	return nil
}

// Points are a series' data points, one a period that has any, by the period's number since the first line's. As in
// CloudWatch, periods begin by the clock and nothing is filled in.
func (f *Figures) Points(s Series) (map[int]float64, error) {
	points := map[int]float64{}
	if s.Namespace != ours || len(s.Dimensions) != 1 {
		return points, nil
	}
	periods := map[int][]float64{}
	for _, v := range f.values[[2]string{strings.Trim(s.Dimensions[0][1], "${}"), s.Name}] {
		period := time.Duration(s.Period) * time.Second
		n := int(v.at.Truncate(period).Sub(f.First.Truncate(period)) / period)
		periods[n] = append(periods[n], v.of)
	}
	for n, values := range periods {
		point, err := statistic(s.Stat, values)
		if err != nil {
			return nil, err
		}
		points[n] = point
	}
	return points, nil
}

// ours is the namespace of the code's own metrics; no other's are in the lines.
const ours = "Dakghar"

func statistic(name string, values []float64) (float64, error) {
	slices.Sort(values)
	switch name {
	case "Sum":
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return sum, nil
	case "Maximum":
		return values[len(values)-1], nil
	}
	p, err := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
	if err != nil || !strings.HasPrefix(name, "p") || p <= 0 || p > 100 {
		return 0, fmt.Errorf("the statistic %s is not drawn", name)
	}
	return values[int(math.Ceil(p/100*float64(len(values))))-1], nil
}
