package business_test

import (
	"os"
	"strings"
	"testing"
)

// The guide's handler is the one that runs as an example, word for word.
func TestTheGuideShowsTheHandlerThatRuns(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/extend/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```go\nfunc (bookings)")
	shown, _, found := strings.Cut(rest, "```")
	if !found || !strings.Contains(string(example), "func (bookings)"+shown) {
		t.Error("docs/extend/handlers.md and example_test.go differ")
	}
}
