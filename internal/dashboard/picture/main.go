// Command picture draws the template's dashboard with the figures of a run: it reads template.yaml and log lines, and
// writes SVG. `make dashboard-picture` makes the run and calls it. It starts nothing, and makes no figure up.
package main

import (
	"flag"
	"log/slog"
	"os"

	"dakghar/internal/dashboard"
)

func main() {
	template := flag.String("template", "template.yaml", "the template with the dashboard")
	lines := flag.String("log", "", "log lines of a run, as dakghar dev prints them")
	out := flag.String("out", "docs/operate/dashboard.svg", "where the picture goes")
	flag.Parse()
	if err := run(*template, *lines, *out); err != nil {
		slog.Error("no picture", "error", err)
		os.Exit(1)
	}
}

func run(template, lines, out string) error {
	text, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	widgets, err := dashboard.Read(text)
	if err != nil {
		return err
	}
	log, err := os.Open(lines)
	if err != nil {
		return err
	}
	defer log.Close()
	figures, err := dashboard.ReadFigures(log)
	if err != nil {
		return err
	}
	picture, err := dashboard.Draw(widgets, figures)
	if err != nil {
		return err
	}
	return os.WriteFile(out, picture, 0o644) //nolint:gosec // a page of the documentation
}
