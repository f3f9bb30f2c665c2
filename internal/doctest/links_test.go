//go:build unix

package doctest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every page's links within the repository lead to a file that is there, and to a
// heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		pages = append(pages, found(t, pattern)...)
	}
	for _, page := range pages {
		for _, link := range links(text(t, page)) {
			if problem := deadEnd(t, page, link); problem != "" {
				t.Errorf("%s: the link %s %s", page, link, problem)
			}
		}
	}
}

// A link that leads nowhere is seen, and what only looks like one is left alone.
func TestADeadEndIsSeen(t *testing.T) {
	t.Parallel()
	page := "# A page\n[a](../README.md) [b](nowhere.md#x) [c](alarms.md#eventsfail) [d](alarms.md#nothing) `[e](f.md)`\n" +
		"```sh\n[g](h.md)\n```\n[i](https://example.com/) [j](#here)\n"
	problems := map[string]string{}
	for _, link := range links(page) {
		problems[link] = deadEnd(t, "docs/operate/logs.md", link)
	}
	want := map[string]string{
		"../README.md": "", "nowhere.md#x": "leads to no file", "alarms.md#eventsfail": "", "alarms.md#nothing": "leads to no heading",
		"https://example.com/": "", "#here": "leads to no heading",
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// The security page says of each control what holds it: tests and files that are there.
func TestTheSecurityPageNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	page := text(t, "docs/understand/security.md")
	tests := testNames(t)
	names := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(page, -1)
	places := regexp.MustCompile("`((?:internal|cmd)/[a-z0-9_/.-]+)`").FindAllStringSubmatch(page, -1)
	if len(names) < 40 || len(places) < 15 {
		t.Errorf("the page names %d tests and %d places: is it read rightly?", len(names), len(places))
	}
	for _, name := range names {
		if !slices.Contains(tests, name[1]) {
			t.Errorf("there is no test %s", name[1])
		}
	}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join("../..", place[1])); err != nil {
			t.Errorf("there is no %s", place[1])
		}
	}
}

// A requirement that a test names, or that a fault shows, is found on its page.
func TestTheRequirementsThatAreNamedHaveTheirSentence(t *testing.T) {
	t.Parallel()
	page := text(t, "docs/understand/requirements.md")
	id := regexp.MustCompile(`\b[LAVPSDWORMXT]\d{1,2}\b`)
	listed := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^\| \*\*([A-Z]\d+)\*\* \| .+ \|$`).FindAllStringSubmatch(page, -1) {
		if listed[line[1]] {
			t.Errorf("%s is there twice", line[1])
		}
		listed[line[1]] = true
	}
	named := map[string]bool{}
	says := regexp.MustCompile(`(?:Proves |Shows: +")([^.:"\n]*)`)
	for _, file := range append(testFiles(t), found(t, "internal/devstack/fault/live/*.go")...) {
		for _, says := range says.FindAllStringSubmatch(text(t, file), -1) {
			for _, name := range id.FindAllString(says[1], -1) {
				if named[name] = true; !listed[name] {
					t.Errorf("%s names %s, which is not on the page", file, name)
				}
			}
		}
	}
	if len(named) < 60 {
		t.Errorf("tests name %d requirements: are they read rightly?", len(named))
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// links are the targets of a page's links, outside of its code.
func links(page string) []string {
	prose := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(page, "")
	prose = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(prose, "")
	var all []string
	for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1) {
		all = append(all, match[1])
	}
	return all
}

// deadEnd says what is wrong with a link, nothing for one that leads out of the repository.
func deadEnd(t *testing.T, page, link string) string {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	path, heading, _ := strings.Cut(link, "#")
	target := page
	if path != "" {
		target = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
	}
	if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
		return "leads to no file"
	}
	if heading != "" && strings.HasSuffix(target, ".md") && !slices.Contains(headings(text(t, target)), heading) {
		return "leads to no heading"
	}
	return ""
}

// headings are the anchors that a page's headings get: lower case, words joined
// by hyphens, other signs left out.
func headings(page string) []string {
	var all []string
	other := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, match := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		anchor := other.ReplaceAllString(strings.ToLower(match[1]), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}

// testNames are the names of all tests of the repository.
func testNames(t *testing.T) []string {
	t.Helper()
	var all []string
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	for _, file := range testFiles(t) {
		for _, match := range declared.FindAllStringSubmatch(text(t, file), -1) {
			all = append(all, match[1])
		}
	}
	return all
}

func testFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"internal/*/*_test.go", "internal/*/*/*_test.go", "cmd/*/*_test.go"} {
		all = append(all, found(t, pattern)...)
	}
	return all
}
