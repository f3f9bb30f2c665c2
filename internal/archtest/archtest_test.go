package archtest

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The tree as it is. Every failure is one edge with the sentence that it breaks.
func TestTheTreeKeepsItsLayers(t *testing.T) {
	packages, err := Packages(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Fatalf("only %d packages were found: this test no longer sees the tree", len(packages))
	}
	for _, broken := range Check(packages, Rules) {
		t.Error(broken)
	}
	for _, broken := range Linked(packages, Unlinked) {
		t.Error(broken)
	}
	for _, silent := range Uncommented(packages) {
		t.Error(silent)
	}
}

func TestTheTreeIsFreeOfWhatWeDoWithout(t *testing.T) {
	broken, err := Banned(os.DirFS("../.."), Bans)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

// planted is a tree in which one file imports one package.
func planted(name, imported string) fstest.MapFS {
	source := "// Package p is planted.\npackage p\n\nimport _ \"" + imported + "\"\n"
	return fstest.MapFS{name: {Data: []byte(source)}}
}

func check(t *testing.T, tree fstest.MapFS) []string {
	t.Helper()
	packages, err := Packages(tree)
	if err != nil {
		t.Fatal(err)
	}
	return Check(packages, Rules)
}

// Every rule fails on what it is there for: one import a row, from a file of that layer.
func TestEveryRuleCatchesItsViolation(t *testing.T) {
	tests := map[string]struct{ file, imports, sentence string }{
		"a word imports another module":           {"internal/webhook/x.go", "github.com/google/go-cmp/cmp", "words and rules are pure"},
		"a word imports upward":                   {"internal/fault/x.go", "dakghar/internal/webhook", "each other downward"},
		"a word imports a part":                   {"internal/signature/x.go", "dakghar/internal/provider", "words and rules are pure"},
		"a word reads the world":                  {"internal/backoff/x.go", "math/rand/v2", "words and rules are pure"},
		"delivery reaches for the network":        {"internal/delivery/x.go", "net", "words and rules are pure"},
		"the contract imports a stage":            {"internal/provider/x.go", "dakghar/internal/ingress", "parts that stages are built from"},
		"ordering imports a part":                 {"internal/ordering/x.go", "dakghar/internal/business", "parts that stages are built from"},
		"the directory imports a stage":           {"internal/directory/x.go", "dakghar/internal/ingress", "parts that stages are built from"},
		"the registry imports a stage":            {"internal/provider/all/x.go", "dakghar/internal/ingress", "only the registry knows them all"},
		"a provider imports its neighbour":        {"internal/provider/stripe/x.go", "dakghar/internal/provider/github", "one adapter per provider"},
		"a provider imports an SDK":               {"internal/provider/stripe/x.go", "github.com/stripe/stripe-go/v83/webhook", "one adapter per provider"},
		"an API's client imports the network":     {"internal/provider/remote/x.go", "dakghar/internal/egress", "who makes the request and who keeps the credential"},
		"a handler imports an adapter":            {"internal/business/x.go", "dakghar/internal/dynamo", "leave the writing to others"},
		"a stage imports a stage":                 {"internal/relay/x.go", "dakghar/internal/processor", "stages never import each other"},
		"a stage imports an adapter":              {"internal/ingress/x.go", "dakghar/internal/body", "stages never import each other or an adapter"},
		"a stage imports AWS":                     {"internal/processor/x.go", "github.com/aws/aws-sdk-go-v2/service/sqs", "stages never import each other or an adapter"},
		"an adapter imports an adapter":           {"internal/queue/x.go", "dakghar/internal/dynamo", "adapters import words only"},
		"an adapter imports a stage":              {"internal/secret/x.go", "dakghar/internal/ingress", "adapters import words only"},
		"an adapter knows Lambda":                 {"internal/telemetry/x.go", "github.com/aws/aws-lambda-go/lambdacontext", "adapters import words only"},
		"an edge imports the SDK":                 {"internal/lambdaedge/x.go", "github.com/aws/aws-sdk-go-v2/service/sqs", "know no AWS client"},
		"an edge imports a store":                 {"internal/lambdaedge/x.go", "dakghar/internal/dynamo", "edges are the only code"},
		"wiring imports a stage":                  {"internal/config/x.go", "dakghar/internal/ingress", "wiring turns the environment"},
		"a helper imports a main package":         {"internal/devstack/x.go", "dakghar/functions/ingress", "never a main package"},
		"a function imports the local stack":      {"functions/ingress/main.go", "dakghar/internal/devstack", "functions are parts lists"},
		"a function imports the command line":     {"functions/relay/main.go", "github.com/spf13/cobra", "functions are parts lists"},
		"the calculator imports a word":           {"internal/capacity/x.go", "dakghar/internal/webhook", "arithmetic on its arguments"},
		"the command imports a test helper":       {"cmd/dakghar/main.go", "dakghar/internal/storetest", "what only tests use"},
		"a stage imports what serves development": {"internal/ingress/x.go", "dakghar/internal/crashtest", "stages never import each other or an adapter"},
		"a package that no layer claims":          {"internal/misc/x.go", "fmt", "belongs to no layer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broken := check(t, planted(tt.file, tt.imports))
			if len(broken) != 1 || !strings.Contains(broken[0], tt.sentence) {
				t.Errorf("got %q, want one violation that says %q", broken, tt.sentence)
			}
		})
	}
	t.Run("and every rule has such a row", func(t *testing.T) {
		caught := map[string]bool{}
		for _, tt := range tests {
			dir := tt.file[:strings.LastIndex(tt.file, "/")]
			if rule, ok := governing(Rules, dir); ok {
				caught[rule.Layer] = true
			}
		}
		for _, rule := range Rules {
			if !caught[rule.Layer] {
				t.Errorf("no planted violation of layer %s", rule.Layer)
			}
		}
	})
}

func TestWhatTheDesignAllowsPasses(t *testing.T) {
	allowed := map[string]struct{ file, imports string }{
		"a word imports a word below it":    {"internal/webhook/x.go", "dakghar/internal/fault"},
		"a word imports the library":        {"internal/signature/x.go", "crypto/hmac"},
		"a provider imports the contract":   {"internal/provider/stripe/x.go", "dakghar/internal/provider"},
		"the registry imports a provider":   {"internal/provider/all/x.go", "dakghar/internal/provider/stripe"},
		"a stage imports a part":            {"internal/processor/x.go", "dakghar/internal/business"},
		"an adapter imports the SDK":        {"internal/dynamo/x.go", "github.com/aws/aws-sdk-go-v2/service/dynamodb"},
		"an edge imports a stage":           {"internal/lambdaedge/x.go", "dakghar/internal/relay"},
		"an edge imports telemetry":         {"internal/lambdaedge/x.go", "dakghar/internal/telemetry"},
		"a function imports an adapter":     {"functions/relay/main.go", "dakghar/internal/queue"},
		"the command runs the local stack":  {"cmd/dakghar/main.go", "dakghar/internal/devstack"},
		"a test imports what it exercises":  {"internal/ingress/x_test.go", "dakghar/internal/devstack"},
		"testdata is nobody's business":     {"internal/ingress/testdata/x.go", "dakghar/internal/dynamo"},
		"what was built is not looked into": {"build/tools/x.go", "dakghar/internal/dynamo"},
	}
	for name, tt := range allowed {
		t.Run(name, func(t *testing.T) {
			if broken := check(t, planted(tt.file, tt.imports)); len(broken) != 0 {
				t.Errorf("refused: %q", broken)
			}
		})
	}
}

func TestAReportNamesFileEdgeAndSentence(t *testing.T) {
	got := check(t, planted("internal/relay/relay.go", "dakghar/internal/processor"))
	want := []string{"internal/relay/relay.go:4: stage internal/relay imports dakghar/internal/processor: " +
		"stages never import each other or an adapter; they declare the one- or two-method interfaces they need"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// Files that only a test's build tag brings in may name the crash points; the same import without the tag is caught.
func TestFilesForTestsOnlyAreLeftOut(t *testing.T) {
	hook := func(tag string) fstest.MapFS {
		source := tag + "\n// Package awsconfig is planted.\npackage awsconfig\n\nimport _ \"dakghar/internal/crashtest\"\n"
		return fstest.MapFS{"internal/awsconfig/hook.go": {Data: []byte(source)}}
	}
	for tag, violations := range map[string]int{
		"//go:build crashtest\n":          0,
		"//go:build linux && crashtest\n": 0,
		"//go:build !crashtest\n":         1,
		"//go:build linux\n":              1,
		"":                                1,
	} {
		if broken := check(t, hook(tag)); len(broken) != violations {
			t.Errorf("with %q: %q, want %d violations", tag, broken, violations)
		}
	}
}

func TestABinaryIsSearchedToTheEnd(t *testing.T) {
	file := func(imports string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("// Package p is planted.\npackage p\n\nimport _ \"" + imports + "\"\n")}
	}
	packages, err := Packages(fstest.MapFS{
		"functions/relay/main.go":     {Data: file("dakghar/internal/lambdaedge").Data},
		"internal/lambdaedge/edge.go": file("dakghar/internal/telemetry"),
		"internal/telemetry/log.go":   file("dakghar/internal/devstack/fault"),
		"internal/devstack/fault/f.go": file(
			"github.com/spf13/cobra"),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := Linked(packages, Unlinked)
	want := []string{"functions/relay → internal/lambdaedge → internal/telemetry → internal/devstack/fault: " +
		"function binaries link neither the local stack nor the command line: their size and their start are bounded"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ways (-want +got):\n%s", diff)
	}
}

func TestAPackageWithoutACommentIsFound(t *testing.T) {
	packages, err := Packages(fstest.MapFS{
		"internal/a/a.go":      {Data: []byte("// Package a is for reading.\npackage a\n")},
		"internal/a/more.go":   {Data: []byte("package a\n")},
		"internal/b/b.go":      {Data: []byte("//go:build linux\n\npackage b\n")},
		"internal/c/c_test.go": {Data: []byte("package c\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"internal/b has no package comment: say its purpose, its invariants and what it refuses to do"}
	if diff := cmp.Diff(want, Uncommented(packages)); diff != "" {
		t.Errorf("uncommented (-want +got):\n%s", diff)
	}
}

func TestBannedWordsAreFound(t *testing.T) {
	later, sleep := "TO"+"DO", "time.Sl"+"eep(1)"
	got, err := Banned(fstest.MapFS{
		"docs/run.md":      {Data: []byte("fine\nleft " + later + " do\n")},
		"a/a_test.go":      {Data: []byte("package a\n\nfunc f() { " + sleep + " }\n")},
		"a/b_test.go":      {Data: []byte("package a\n\nimport \"testing/synctest\"\n\nfunc g() { " + sleep + " }\n")},
		"a/a.go":           {Data: []byte("package a\n\nfunc f() { " + sleep + " }\n")},
		"a/mastodon.go":    {Data: []byte("package a // mas" + strings.ToLower(later) + "n, METHO" + later + "X\n")},
		"build/tools/x.md": {Data: []byte(later)},
		"LICENSE":          {Data: []byte(later)},
	}, Bans)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a/a_test.go:3 has time.Sl" + "eep(: a test waits for a signal or moves a clock, it never sleeps",
		"docs/run.md:2 has " + later + ": work that is left is an issue, not a comment",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("banned (-want +got):\n%s", diff)
	}
}
