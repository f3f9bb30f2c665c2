package lambdaedge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/canary"
	"dakghar/internal/dispatcher"
	"dakghar/internal/ingress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/processor"
	"dakghar/internal/provider"
	"dakghar/internal/reconciler"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// words collects texts of a package's source.
type words struct{ all []string }

func (w *words) add(e ast.Expr) {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
			w.all = append(w.all, text)
		}
	}
}

func (w *words) sorted() []string {
	slices.Sort(w.all)
	return slices.Compact(w.all)
}

// read walks the source of a package, or of one of its files, without its tests.
func read(t *testing.T, pattern string, visit func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}

// arguments are the literals at a place among the arguments of a method's calls.
func arguments(t *testing.T, pattern, method string, place int) []string {
	t.Helper()
	var found words
	read(t, pattern, func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) <= place {
			return
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == method {
			found.add(call.Args[place])
		}
	})
	return found.sorted()
}

// constants are the values of constants whose name, or whose type, is wanted.
func constants(t *testing.T, pattern string, wanted func(name, kind string) bool) []string {
	t.Helper()
	var found words
	read(t, pattern, func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return
		}
		kind, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			if i < len(spec.Values) && wanted(name.Name, identifier(kind)) {
				found.add(spec.Values[i])
			}
		}
	})
	return found.sorted()
}

func identifier(id *ast.Ident) string {
	if id == nil {
		return ""
	}
	return id.Name
}

// assigned are the literals that are assigned to a variable.
func assigned(t *testing.T, pattern, variable string) []string {
	t.Helper()
	var found words
	read(t, pattern, func(n ast.Node) {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return
		}
		for i, left := range a.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name == variable {
				found.add(a.Rhs[i])
			}
		}
	})
	return found.sorted()
}

// codes are the public codes of refusals in ingress.
func codes(t *testing.T) []string {
	t.Helper()
	var found words
	read(t, "../ingress/*.go", func(n ast.Node) {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 4 {
			return
		}
		if id, ok := lit.Type.(*ast.Ident); ok && id.Name == "refusal" {
			found.add(lit.Elts[1])
		}
	})
	return found.sorted()
}

func texts[T ~string](lists ...[]T) []string {
	var all []string
	for _, list := range lists {
		for _, v := range list {
			all = append(all, string(v))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What a stage lists is what its source says: a decision, a cause or an act that is
// added there without its place in the list fails here. Proves M1.
func TestTheStagesListWhatTheySay(t *testing.T) {
	t.Parallel()
	typed := func(kind string) func(string, string) bool { return func(_, of string) bool { return of == kind } }
	prefixed := func(prefix string) func(string, string) bool {
		return func(name, _ string) bool { return strings.HasPrefix(name, prefix) && name != prefix }
	}
	outcomes := []webhook.Outcome{webhook.Applied, webhook.Stale, webhook.Ignored, webhook.AlreadyApplied}
	causes := constants(t, "../ingress/answer.go", prefixed("Code"))
	tests := []struct {
		of     string
		listed []string
		said   []string
	}{
		{"processor", texts(processor.Decisions()), texts(arguments(t, "../processor/*.go", "end", 0), constants(t, "../processor/*.go", prefixed("decision")), texts(outcomes))},
		{"dispatcher", texts(dispatcher.Decisions()), texts(arguments(t, "../dispatcher/*.go", "end", 0), arguments(t, "../dispatcher/*.go", "change", 2), assigned(t, "../dispatcher/*.go", "decision"))},
		{"ingress, successes", texts(ingress.Successes()), constants(t, "../ingress/*.go", typed("Decision"))},
		{"ingress, refusals", texts(ingress.RefusalCodes()), texts(codes(t), causes, provider.BodyCodes())},
		{"ingress, limits", texts(ingress.LimitCauses()), arguments(t, "../ingress/*.go", "limit", 0)},
		{"bodies", texts(provider.BodyCodes()), constants(t, "../provider/scan.go", prefixed("Code"))},
		{"signatures", texts(signature.Causes()), constants(t, "../signature/*.go", typed("Cause"))},
		{"outcomes", texts(outcomes), constants(t, "../webhook/*.go", typed("Outcome"))},
		{"differences", texts(reconciler.Kinds()), constants(t, "../reconciler/*.go", typed("Kind"))},
		{"canary", texts(canary.Decisions()), constants(t, "../canary/*.go", typed("Decision"))},
		{"acts", texts(reconciler.Acts()), acted(t)},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.said, tt.listed); diff != "" {
			t.Errorf("%s (-in the source +listed):\n%s", tt.of, diff)
		}
	}
}

// acted are the constants of the block that begins with Woken.
func acted(t *testing.T) []string {
	t.Helper()
	var found words
	read(t, "../reconciler/reconciler.go", func(n ast.Node) {
		block, ok := n.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			return
		}
		if first := block.Specs[0].(*ast.ValueSpec); first.Names[0].Name != "Woken" {
			return
		}
		for _, spec := range block.Specs {
			found.add(spec.(*ast.ValueSpec).Values[0])
		}
	})
	return found.sorted()
}

// What the edges write by a name of their own is listed, and what is listed and is
// no stage's word is written. Proves M1, M2.
func TestTheEdgesListWhatTheyWrite(t *testing.T) {
	t.Parallel()
	files := map[string][]string{
		"ingress": {"http.go"}, "relay": {"batch.go"}, "processor": {"batch.go"}, "dispatcher": {"dispatch.go", "batch.go"}, "reconciler": {"batch.go", "backfill.go"}, "canary": {"canary.go"},
	}
	var listed, written []string
	for _, metrics := range lambdaedge.Metrics() {
		for _, m := range metrics {
			listed = append(listed, m.Name)
		}
	}
	for _, method := range []string{"Count", "Millis", "Seconds"} {
		written = append(written, arguments(t, "*.go", method, 0)...)
	}
	written = append(written, constants(t, "*.go", func(name, _ string) bool { return name == "kmsFailed" })...)
	for _, name := range written {
		if !slices.Contains(listed, name) {
			t.Errorf("the metric %s is written and not listed", name)
		}
	}
	said := texts(processor.Decisions(), dispatcher.Decisions(), texts(canary.Decisions()), ingress.LimitCauses(), []string{processor.GapExpired}, texts(ingress.Successes()))
	for _, name := range listed {
		stage := slices.Contains(said, name) || slices.ContainsFunc([]string{"refused_", "reconciler_", "audit_", "backfill_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !stage && !slices.Contains(written, name) {
			t.Errorf("the metric %s is listed, and nobody writes it", name)
		}
	}
	for function, fields := range lambdaedge.Fields() {
		var has []string
		for _, file := range files[function] {
			has = append(has, arguments(t, file, "Str", 0)...)
		}
		for _, field := range fields {
			if !slices.Contains(has, field) && !slices.Contains([]string{"_aws", "function", "error", "provider"}, field) {
				t.Errorf("the field %s of %s is listed, and nobody writes it", field, function)
			}
		}
	}
}

// A dashboard that knows a metric by two units would draw it twice.
func TestAMetricHasOneUnit(t *testing.T) {
	t.Parallel()
	for function, metrics := range lambdaedge.Metrics() {
		seen := map[string]bool{}
		for _, m := range metrics {
			if seen[m.Name] {
				t.Errorf("%s lists %s twice", function, m.Name)
			}
			seen[m.Name] = true
		}
	}
}
