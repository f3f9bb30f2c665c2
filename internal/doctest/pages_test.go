//go:build unix

package doctest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/doctest"
)

// page is a page of the documentation, and what it presumes.
type page struct {
	path string // below the repository's root
	// arrange brings the page's stack into the state that the page is about.
	arrange func(context.Context, *site) error
	// files are what a reader has saved before, by name.
	files map[string]string
	// providers, if set, stands in for the providers' own APIs.
	providers http.Handler
	// slow marks a page that mostly waits: it begins at once.
	slow bool
	// example marks a page whose blocks are about a program that is not there.
	example bool
}

// pages are what is run. The runbooks are found, so that a new one cannot be
// forgotten; each begins with events of every state.
func pages(t *testing.T) []page {
	t.Helper()
	all := []page{
		{path: "README.md"},
		{path: "docs/run/local.md"},
	}
	presumed := map[string]page{
		"docs/operate/backfill.md": {
			files: map[string]string{"key.txt": "rk_test_made_up_for_the_backfill_page"}, providers: listedEvents(), arrange: endpointsOnly,
		},
		"docs/operate/pause.md":           {arrange: eventsWait, slow: true},
		"docs/operate/provider-outage.md": {slow: true},
		"docs/operate/rotate-secret.md":   {files: map[string]string{"new.txt": "whsec_second_secret_of_the_demo_page"}},
		"docs/operate/secret-leaked.md":   {files: map[string]string{"fresh.txt": "whsec_second_secret_of_the_demo_page"}},
	}
	for _, path := range found(t, "docs/operate/*.md") {
		p := presumed[path]
		p.path = path
		if p.arrange == nil {
			p.arrange = everyState
		}
		all = append(all, p)
	}
	for _, path := range found(t, "docs/extend/*.md") {
		all = append(all, page{path: path, example: true})
	}
	return all
}

func found(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for i, f := range files {
		files[i] = strings.TrimPrefix(filepath.ToSlash(f), "../../")
	}
	return files
}

// atOnce is how many pages are tried at once, besides slow ones.
const atOnce = 3

// TestPages types what the pages tell a reader to type, each page on a local
// stack of its own, and compares what is shown. `go test ./internal/doctest -run
// TestPages/rotate-secret -v` tries one. Proves R3, S4, O4.
func TestPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the programs and runs a stack for each page")
	}
	var tries []*try
	for _, p := range pages(t) {
		tries = append(tries, read(t, p))
	}
	b, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, dir := t.Context(), t.TempDir()
	slots := make(chan struct{}, atOnce)
	for _, y := range tries {
		t.Run(y.name(), func(t *testing.T) {
			// Beside the tests that run: a page waits for workers most of its time.
			done := make(chan struct{})
			go func() {
				defer close(done)
				if !y.slow {
					slots <- struct{}{}
					defer func() { <-slots }()
				}
				y.run(ctx, filepath.Join(dir, y.name()), b)
			}()
			t.Parallel()
			<-done
			y.report(t)
		})
	}
}

// A page of which nothing is tried is refused, and so is a block that bash does
// not understand although nobody runs it.
func TestAPageIsNotHidden(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		example bool
		text    string
		want    []string
	}{
		{"one block runs", false, "```sh\ntrue\n```\n```sh long\ntrue\n```\n", nil},
		{"no block runs", false, "```sh long\ntrue\n```\n", []string{"p.md: no block of this page can be run on the local stack"}},
		{"no block at all", false, "words\n", []string{"p.md: no block of this page can be run on the local stack"}},
		{"a page of examples", true, "```sh example\ntrue\n```\n", nil},
		{"a command is hidden", true, "```text\nmake run\n```\n", []string{`p.md:1: the block has the command "make run" and is not marked sh`}},
	}
	for _, tt := range tests {
		blocks, err := doctest.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		y := &try{page: page{path: "p.md", example: tt.example}, blocks: blocks}
		y.judge(t.Context())
		if diff := cmp.Diff(tt.want, y.problems); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", tt.name, diff)
		}
	}
	y := &try{page: page{path: "p.md", example: true}, blocks: []doctest.Block{{Line: 3, Info: "sh long", Text: "for f in a; do\n"}}}
	y.judge(t.Context())
	if len(y.problems) != 1 || !strings.HasPrefix(y.problems[0], "p.md:3: bash does not understand the block") {
		t.Errorf("half a loop: problems %q", y.problems)
	}
}

// try is a page being tried.
type try struct {
	page
	blocks []doctest.Block
	// problems are what is wrong, each with its place; notes what is not run.
	problems, notes []string
	runs            bool // whether there is anything to run
}

func (y *try) name() string { return strings.TrimSuffix(filepath.Base(y.path), ".md") }

func read(t *testing.T, p page) *try {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", p.path))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := doctest.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", p.path, err)
	}
	y := &try{page: p, blocks: blocks}
	y.judge(t.Context())
	return y
}

// judge looks at the blocks without running them.
func (y *try) judge(ctx context.Context) {
	for _, b := range y.blocks {
		if problem := b.Problem(); problem != "" {
			y.fault(b, "the block %s", problem)
		}
		switch {
		case b.Runs():
			y.runs = true
		case b.Excluded() != "":
			y.notes = append(y.notes, fmt.Sprintf("%s:%d: not run: %s", y.path, b.Line, b.Excluded()))
			if err := understood(ctx, b.Text); err != nil {
				y.fault(b, "bash does not understand the block: %v", err)
			}
		}
	}
	if !y.runs && !y.example {
		y.problems = append(y.problems, y.path+": no block of this page can be run on the local stack")
	}
}

func (y *try) fault(b doctest.Block, format string, args ...any) {
	y.problems = append(y.problems, fmt.Sprintf("%s:%d: ", y.path, b.Line)+fmt.Sprintf(format, args...))
}

// run types the page, to its end or to the first block that fails.
func (y *try) run(ctx context.Context, dir string, b built) {
	if len(y.problems) > 0 || !y.runs {
		return
	}
	s, err := open(ctx, dir, b, y.page)
	if err != nil {
		y.problems = append(y.problems, y.path+": "+err.Error())
		return
	}
	defer func() {
		s.stack.Stop()
		for _, line := range s.stack.Denied() {
			y.problems = append(y.problems, y.path+": "+line)
		}
	}()
	for _, block := range y.blocks {
		if !block.Runs() {
			continue
		}
		said, err := s.shell.run(ctx, block.Text)
		err = errors.Join(err, s.settle(ctx))
		if err != nil {
			y.fault(block, "%v\n%s\nit said\n%s", err, block.Text, said)
			return
		}
		if missing := block.Missing(said); len(missing) > 0 {
			y.fault(block, "it does not print\n  %s\n%s\nit said\n%s", strings.Join(missing, "\n  "), block.Text, said)
			return
		}
	}
}

func (y *try) report(t *testing.T) {
	t.Helper()
	for _, note := range y.notes {
		t.Log(note)
	}
	for _, problem := range y.problems {
		t.Error(problem)
	}
}
