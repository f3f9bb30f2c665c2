package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// testTags are build tags of files that are built for tests alone.
var testTags = []string{"crashtest"}

// A Package is one directory's Go files as they are built for use.
type Package struct {
	Dir       string
	Commented bool // whether a package comment says what it is for
	Imports   []Import
}

// An Import is one import of one file.
type Import struct {
	Position string // file:line
	Path     string
}

// Packages reads the import graph of a tree. Tests, testdata and files that a test's build tag brings in are left out.
func Packages(tree fs.FS) (map[string]*Package, error) {
	packages := map[string]*Package{}
	err := walk(tree, func(name string) error {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if forTestsOnly(file) {
			return nil
		}
		p := packages[path.Dir(name)]
		if p == nil {
			p = &Package{Dir: path.Dir(name)}
			packages[p.Dir] = p
		}
		p.Commented = p.Commented || file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != ""
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			p.Imports = append(p.Imports, Import{Position: at(files, spec.Pos()), Path: imported})
		}
		return nil
	})
	return packages, err
}

func at(files *token.FileSet, pos token.Pos) string {
	p := files.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// walk visits every file that belongs to the project.
func walk(tree fs.FS, visit func(name string) error) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return visit(name)
		}
		if skipped(name) {
			return fs.SkipDir
		}
		return nil
	})
}

// skipped tells directories that hold what is made, fetched or only read by tests.
func skipped(name string) bool {
	base := path.Base(name)
	return slices.Contains([]string{"build", "bin", ".git", ".aws-sam"}, name) ||
		base == "testdata" || base == "node_modules" || strings.HasPrefix(base, "_")
}

// forTestsOnly tells whether a build constraint keeps the file out of every build for use.
func forTestsOnly(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			if !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expression, err := constraint.Parse(comment.Text)
			if err != nil {
				continue
			}
			built := func(others bool) bool {
				return expression.Eval(func(tag string) bool { return others && !slices.Contains(testTags, tag) })
			}
			if !built(true) && !built(false) {
				return true
			}
		}
	}
	return false
}

// Check returns every import that breaks a rule, and every package that no rule governs.
func Check(packages map[string]*Package, rules []Rule) []string {
	var broken []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		rule, ok := governing(rules, dir)
		if !ok {
			broken = append(broken, fmt.Sprintf("%s belongs to no layer: say in archtest's rules what it may import", dir))
			continue
		}
		for _, i := range packages[dir].Imports {
			if !rule.allows(i.Path) {
				broken = append(broken, fmt.Sprintf("%s: %s %s imports %s: %s", i.Position, rule.Layer, dir, i.Path, rule.Sentence))
			}
		}
	}
	return broken
}

func governing(rules []Rule, dir string) (Rule, bool) {
	for _, r := range rules {
		if matchesAny(r.Packages, dir) {
			return r, true
		}
	}
	return Rule{}, false
}

func (r Rule) allows(imported string) bool {
	if dir, own := strings.CutPrefix(imported, module+"/"); own {
		return matchesAny(r.Ours, dir)
	}
	if standard(imported) {
		return !slices.Contains(r.Never, imported)
	}
	return !under(r.Never, imported) && under(r.Libraries, imported)
}

// standard tells the standard library's packages: their first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// under tells whether a package is one of the prefixes or below one.
func under(prefixes []string, imported string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return p == "..." || imported == p || strings.HasPrefix(imported, p+"/")
	})
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches knows "a/b" and "a/b/...", the latter including a/b itself.
func matches(pattern, name string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	return name == base || deep && strings.HasPrefix(name, base+"/")
}

// Linked returns every way by which a program links what it must not.
func Linked(packages map[string]*Package, rules []Linkless) []string {
	var broken []string
	for _, rule := range rules {
		for _, dir := range slices.Sorted(maps.Keys(packages)) {
			if !matches(rule.Program, dir) {
				continue
			}
			for _, way := range ways(packages, dir, rule.Packages) {
				broken = append(broken, strings.Join(way, " → ")+": "+rule.Sentence)
			}
		}
	}
	return broken
}

// ways walks breadth first from a program and returns the shortest way to each forbidden package.
func ways(packages map[string]*Package, from string, forbidden []string) [][]string {
	var found [][]string
	seen := map[string]bool{}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		p := packages[way[len(way)-1]]
		if p == nil {
			continue
		}
		for _, i := range p.Imports {
			if seen[i.Path] {
				continue
			}
			seen[i.Path] = true
			next := append(slices.Clone(way), strings.TrimPrefix(i.Path, module+"/"))
			if matchesAny(forbidden, i.Path) || under(forbidden, i.Path) {
				found = append(found, next)
				continue
			}
			queue = append(queue, next)
		}
	}
	return found
}

// Uncommented returns the packages that do not say what they are for.
func Uncommented(packages map[string]*Package) []string {
	var silent []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if !packages[dir].Commented {
			silent = append(silent, fmt.Sprintf("%s has no package comment: say its purpose, its invariants and what it refuses to do", dir))
		}
	}
	return silent
}
