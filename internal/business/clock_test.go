package business_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clockName matches the names under which times travel in this program.
var clockName = regexp.MustCompile(`(At|Time|Timestamp|Clock|Now)$|^(Created|Received|Unix)`)

// evidence are the uses that are allowed, by file: a provider's own time of an
// object's last change, which can only make a read be repeated.
var evidence = map[string][]string{"converged.go": {"UpdatedAt", "UnixMilli"}}

// clockUses returns every use of a time in Go source: the package time itself,
// and every field or method whose name says that it is one.
func clockUses(name string, source any) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var uses []string
	for _, i := range file.Imports {
		if i.Path.Value == `"time"` {
			uses = append(uses, fmt.Sprintf("%s: imports time", files.Position(i.Pos())))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && clockName.MatchString(s.Sel.Name) {
			uses = append(uses, fmt.Sprintf("%s: uses %s", files.Position(s.Sel.Pos()), s.Sel.Name))
		}
		return true
	})
	return uses, nil
}

// Proves O1: nothing that decides order, here or in the state graphs, touches a
// creation time, a receipt time or any other clock, so none can become a version.
func TestNoHandlerTakesATimeForAVersion(t *testing.T) {
	t.Parallel()
	scanned := 0
	for _, pattern := range []string{"*.go", "../ordering/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			scanned++
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			uses, err := clockUses(file, source)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range uses {
				if !slices.ContainsFunc(evidence[file], func(name string) bool { return strings.HasSuffix(use, "uses "+name) }) {
					t.Error(use)
				}
			}
		}
	}
	if scanned < 5 {
		t.Errorf("only %d files were scanned: the test looks in the wrong place", scanned)
	}
}

// The scan itself finds what it is there to find.
func TestTheScanFindsAPlantedClock(t *testing.T) {
	t.Parallel()
	got, err := clockUses("planted.go", `package planted

import "time"

func version(ev Event) int64 { return ev.Facts.CreatedAt.Unix() + row.ReceivedAt.UnixMilli() }
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"planted.go:3:8: imports time",
		"planted.go:5:58: uses Unix", "planted.go:5:48: uses CreatedAt",
		"planted.go:5:82: uses UnixMilli", "planted.go:5:71: uses ReceivedAt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}
