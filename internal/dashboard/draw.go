package dashboard

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Sizes of the picture, in pixels.
const (
	column = 50
	row    = 27
	gap    = 4  // around a widget
	above  = 24 // a chart's title
	below  = 16 // its time
	beside = 44 // its values
	line   = 13 // of the legend
	// legendMax is how many series a legend names; the rest is counted.
	legendMax = 8
)

// colours tell series apart, on white and on black.
var colours = [...]string{"#3b82d6", "#e8820c", "#2f9e44", "#e03131", "#9061c2", "#a9714b", "#d6549b", "#868e96"}

// Draw returns a picture of the widgets with the figures of a run, as SVG that follows the reader's light or dark
// setting. A series that has no figures is not drawn; a chart without any says so.
func Draw(widgets []Widget, f *Figures) ([]byte, error) {
	bottom := 0
	for _, w := range widgets {
		bottom = max(bottom, w.Y+w.Height)
	}
	d := &drawing{figures: f}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" font-family="system-ui, sans-serif" font-size="11">`,
		Columns*column, bottom*row+24, Columns*column)
	d.put("<title>Dakghar's dashboard, with the figures of a run on one machine</title>%s<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>", style)
	for _, w := range widgets {
		if err := d.widget(w); err != nil {
			return nil, err
		}
	}
	d.put(`<text class="dim" x="8" y="%d">Layout and metrics: template.yaml. Figures: %d log lines of %s on one machine, in periods of a minute; the time is in minutes.</text></svg>`,
		bottom*row+16, f.Lines, f.Last.Sub(f.First).Round(time.Minute))
	return d.Bytes(), nil
}

const style = `<style>
.page{fill:#f2f3f3}.box{fill:#fff;stroke:#d5dbdb}.grid{stroke:#e4e7e7}.limit{stroke:#e03131;stroke-dasharray:5 3}
text{fill:#16191f}.dim{fill:#687078}.h1{font-size:17px;font-weight:600}.h2{font-size:14px;font-weight:600}.t{font-size:12px;font-weight:600}.alarm{fill:none;stroke:#687078}
@media (prefers-color-scheme: dark){.page{fill:#0f141a}.box{fill:#161d26;stroke:#333d4a}.grid{stroke:#26303b}.limit{stroke:#ff6b6b}text{fill:#e6e9ed}.dim{fill:#95a2b0}.alarm{stroke:#95a2b0}}
</style>`

type drawing struct {
	bytes.Buffer
	figures *Figures
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(&d.Buffer, format+"\n", args...) }

func (d *drawing) widget(w Widget) error {
	d.put(`<svg x="%d" y="%d" width="%d" height="%d" data-widget="%s"><rect class="box" x="%d" y="%[6]d" width="%d" height="%d" rx="6"/>`,
		w.X*column, w.Y*row, w.Width*column, w.Height*row, html.EscapeString(Place(w)), gap, w.Width*column-2*gap, w.Height*row-2*gap)
	var err error
	switch w.Type {
	case "text":
		d.words(w)
	case "alarm":
		d.alarms(w)
	default:
		err = d.chart(w)
	}
	d.put(`</svg>`)
	return err
}

// Place is where a widget stands and what it shows, as the picture carries it: a picture of another dashboard is told by it.
func Place(w Widget) string {
	what := w.Title
	if what == "" {
		what = prose(w.Markdown)
	}
	return fmt.Sprintf("%d,%d %dx%d %s: %d", w.X, w.Y, w.Width, w.Height, what, len(w.Series)+len(w.Alarms))
}

// prose is a text without the marks of its links, in a stack of a common name.
func prose(markdown string) string {
	text := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(markdown, "$1")
	return strings.ReplaceAll(text, "${AWS::StackName}", "dakghar")
}

func (d *drawing) words(w Widget) {
	y := 20
	for text := range strings.Lines(prose(w.Markdown)) {
		class := ""
		for mark, of := range map[string]string{"# ": "h1", "## ": "h2"} {
			if rest, ok := strings.CutPrefix(text, mark); ok {
				text, class = rest, of
			}
		}
		for _, part := range wrap(strings.TrimSpace(text), w.Width*column/6) {
			d.put(`<text class="%s" x="14" y="%d">%s</text>`, class, y, html.EscapeString(part))
			y += 18
		}
	}
}

// wrap breaks a text at spaces into lines of so many letters.
func wrap(text string, letters int) []string {
	var lines []string
	for len(text) > letters {
		at := strings.LastIndex(text[:letters], " ")
		if at < 0 {
			break
		}
		lines, text = append(lines, text[:at]), text[at+1:]
	}
	return append(lines, text)
}

// alarms are listed without a state: nobody evaluates them on one machine.
func (d *drawing) alarms(w Widget) {
	const across = 8
	d.put(`<text class="t" x="14" y="21">%s</text>`, html.EscapeString(w.Title))
	wide := (w.Width*column - 20) / across
	for i, alarm := range w.Alarms {
		x, y := 14+i%across*wide, 40+i/across*18
		d.put(`<circle class="alarm" cx="%d" cy="%d" r="4"/><text x="%d" y="%d">%s</text>`, x+5, y-4, x+14, y, html.EscapeString(strings.TrimSuffix(strings.Trim(alarm, "${}"), ".Arn")))
	}
}

// curve is a series that has figures.
type curve struct {
	label, colour string
	points        map[int]float64
	greatest      float64
}

func (d *drawing) curves(w Widget) (curves []curve, err error) {
	for i, s := range w.Series {
		points, err := d.figures.Points(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Title, err)
		}
		c := curve{label: s.Label, colour: colours[i%len(colours)], points: points}
		for _, v := range points {
			c.greatest = max(c.greatest, v)
		}
		if len(points) > 0 {
			curves = append(curves, c)
		}
	}
	// What is 0 throughout comes last in the legend.
	slices.SortStableFunc(curves, func(a, b curve) int { return cmp.Compare(sign(b.greatest), sign(a.greatest)) })
	return curves, nil
}

func sign(v float64) int {
	if v > 0 {
		return 1
	}
	return 0
}

func (d *drawing) chart(w Widget) error {
	curves, err := d.curves(w)
	if err != nil {
		return err
	}
	title := w.Title
	if w.Unit != "" {
		title += ", " + w.Unit
	}
	d.put(`<text class="t" x="14" y="21">%s</text>`, html.EscapeString(title))
	if len(curves) == 0 {
		d.put(`<text class="dim" x="50%%" y="%d" text-anchor="middle">%s</text>`, w.Height*row/2, without(w))
		d.put(`<text class="dim" x="50%%" y="%d" text-anchor="middle">%s</text>`, w.Height*row/2+16, html.EscapeString(few(labels(w.Series), w.Width*column/7)))
		return nil
	}
	if w.Stacked {
		pile(curves, d.periods())
	}
	p := d.plot(w, curves)
	d.axes(p, w)
	for i := len(curves) - 1; i >= 0; i-- {
		d.curve(p, curves[i], w.Stacked)
	}
	d.legend(p, curves)
	return nil
}

// without says why a chart is empty.
func without(w Widget) string {
	for _, s := range w.Series {
		if s.Namespace == ours {
			return "nothing of it happened in this run:"
		}
	}
	return "counted by AWS, and not on one machine:"
}

func labels(series []Series) []string {
	all := make([]string, len(series))
	for i, s := range series {
		all[i] = s.Label
	}
	return all
}

// few are as many names as fit into so many letters, and how many more there are.
func few(names []string, letters int) string {
	names = slices.Compact(names)
	said := names[0]
	for i, name := range names[1:] {
		if len(said)+len(name)+len(", and 99 more") > letters {
			return fmt.Sprintf("%s and %d more", said, len(names)-1-i)
		}
		said += ", " + name
	}
	return said
}

// pile lets each curve stand on those before it.
func pile(curves []curve, periods int) {
	under := make([]float64, periods)
	for i := range curves {
		curves[i].greatest = 0
		for n := range periods {
			under[n] += curves[i].points[n]
			curves[i].points[n] = under[n]
			curves[i].greatest = max(curves[i].greatest, under[n])
		}
	}
}

func (d *drawing) periods() int {
	return int(d.figures.Last.Truncate(time.Minute).Sub(d.figures.First.Truncate(time.Minute))/time.Minute) + 1
}

// plot is where the curves of a chart are.
type plot struct {
	left, top, right, bottom float64
	most                     float64 // the value at the top
	periods                  int
}

func (d *drawing) plot(w Widget, curves []curve) plot {
	most := w.Limit
	for _, c := range curves {
		most = max(most, c.greatest)
	}
	rows := (min(len(curves), legendMax) + 1) / 2
	return plot{
		left: beside, top: above + 10, right: float64(w.Width*column - 16), bottom: float64(w.Height*row - gap - below - rows*line - 6),
		most: nice(most), periods: d.periods(),
	}
}

// nice is the next round number.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, times := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
		if v <= times*unit {
			return times * unit
		}
	}
	return 10 * unit
}

func (p plot) x(period int) float64 {
	return p.left + (p.right-p.left)*float64(period)/float64(max(p.periods-1, 1))
}

func (p plot) y(v float64) float64 { return p.bottom - (p.bottom-p.top)*v/p.most }

func (d *drawing) axes(p plot, w Widget) {
	for _, part := range []float64{0, 0.5, 1} {
		y := p.y(p.most * part)
		d.put(`<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%[3]f"/><text class="dim" x="%.0f" y="%.0f" text-anchor="end" font-size="10">%s</text>`,
			p.left, p.right, y, p.left-5, y+3, short(p.most*part))
	}
	step := max((p.periods+3)/4, 1)
	for n := 0; n < p.periods; n += step {
		d.put(`<text class="dim" x="%.0f" y="%.0f" text-anchor="middle" font-size="10">%d</text>`, p.x(n), p.bottom+13, n)
	}
	if w.Limit > 0 {
		d.put(`<line class="limit" x1="%.0f" x2="%.0f" y1="%.1f" y2="%[3]f"/><text class="dim" x="%.0f" y="%.0f" text-anchor="end" font-size="10">alarm</text>`,
			p.left, p.right, p.y(w.Limit), p.right, p.y(w.Limit)+12)
	}
}

// short writes a number in at most four digits and a unit.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// curve draws runs of neighbouring points as lines, and a point alone as a dot.
func (d *drawing) curve(p plot, c curve, filled bool) {
	for n := 0; n < p.periods; {
		var run []string
		first := n
		for v, ok := c.points[n]; ok && n < p.periods; v, ok = c.points[n] {
			run = append(run, fmt.Sprintf("%.0f,%.1f", p.x(n), p.y(v)))
			n++
		}
		switch {
		case len(run) == 0:
			n++
		case filled:
			d.put(`<polygon fill="%s" points="%.0f,%.1f %s %.0f,%.1f"/>`, c.colour, p.x(first), p.bottom, strings.Join(run, " "), p.x(n-1), p.bottom)
		case len(run) == 1:
			x, y, _ := strings.Cut(run[0], ",")
			d.put(`<circle fill="%s" cx="%s" cy="%s" r="2.5"/>`, c.colour, x, y)
		default:
			d.put(`<polyline fill="none" stroke="%s" stroke-width="1.6" points="%s"/>`, c.colour, strings.Join(run, " "))
		}
	}
}

func (d *drawing) legend(p plot, curves []curve) {
	wide := (p.right - p.left + beside/2) / 2
	for i, c := range curves {
		x, y := beside/2+float64(i%2)*wide, p.bottom+below+float64(i/2*line)+12
		label := c.label
		if i == legendMax-1 && len(curves) > legendMax {
			label = fmt.Sprintf("and %d more", len(curves)-i)
		}
		d.put(`<rect fill="%s" x="%.0f" y="%.0f" width="9" height="9" rx="2"/><text x="%.0f" y="%.0f" font-size="10">%s</text>`, c.colour, x, y-8, x+13, y, html.EscapeString(label))
		if i == legendMax-1 {
			return
		}
	}
}
