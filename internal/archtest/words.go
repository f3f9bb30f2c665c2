package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// A Ban says what no file of a kind may contain.
type Ban struct {
	Files    func(name string) bool
	Pattern  *regexp.Regexp
	Unless   string // a file that contains this may
	Sentence string
}

// Bans are the words that we do without. Their own spelling is broken up here, so that this file may be read by itself.
var Bans = []Ban{
	{
		Files:    written,
		Pattern:  regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`),
		Sentence: "work that is left is an issue, not a comment",
	},
	{
		Files:    func(name string) bool { return strings.HasSuffix(name, "_test.go") },
		Pattern:  regexp.MustCompile(`\btime\.Sl` + `eep\(`),
		Unless:   `"testing/synctest"`, // inside its bubble time is a fake, and sleeping is how it advances
		Sentence: "a test waits for a signal or moves a clock, it never sleeps",
	},
}

// written tells text files that people write: not the licence, not lock files.
func written(name string) bool {
	switch path.Base(name) {
	case "LICENSE", "go.sum", "package-lock.json":
		return false
	case "Makefile", "run":
		return true
	}
	switch path.Ext(name) {
	case ".go", ".yaml", ".yml", ".toml", ".sh", ".md", ".json", ".txt", ".mod", ".pml":
		return true
	}
	return false
}

// Banned returns every line that contains what it must not.
func Banned(tree fs.FS, bans []Ban) ([]string, error) {
	var broken []string
	err := walk(tree, func(name string) error {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		for _, ban := range bans {
			if !ban.Files(name) || ban.Unless != "" && bytes.Contains(text, []byte(ban.Unless)) {
				continue
			}
			for i, line := range strings.Split(string(text), "\n") {
				if found := ban.Pattern.FindString(line); found != "" {
					broken = append(broken, fmt.Sprintf("%s:%d has %s: %s", name, i+1, found, ban.Sentence))
				}
			}
		}
		return nil
	})
	return broken, err
}
