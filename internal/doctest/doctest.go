// Package doctest reads the pages of the documentation for what a reader would
// type, so that a test can type it.
//
// A fenced block that is marked sh is run as it stands, by bash -eu -o pipefail
// in the repository's root, in the order of its page, in one shell as far as
// variables go. A text block right behind it is what it prints, line by line, with …
// for what differs from run to run. A second word after sh says why a
// block is not run, and must be one of [Reasons]. There is no other way to leave a
// block out: other marks for shells are refused, and so is a command in a block
// that is marked as something else.
//
// The package starts nothing and reads no file. What runs the blocks, and the
// stacks that they run on, is in its tests.
package doctest

import (
	"fmt"
	"slices"
	"strings"
)

// Block is one fenced block of a page.
type Block struct {
	Line int    // of its opening fence, from 1
	Info string // what stands behind the fence
	Text string // without the fences and their indent, each line with its end
	// Output is the text block right behind it, empty for none.
	Output string
}

// Reasons are the marks of blocks that are not run: what they need that the
// local stack is not, or that they do not end or take long.
func Reasons() []string {
	return []string{"aws-only", "needs-aws-cli", "needs-docker", "long", "example"}
}

// Runs reports whether the block is to be run.
func (b Block) Runs() bool { return b.Info == "sh" }

// Excluded returns why the block is not run, empty for one that is, or that has
// nothing to run.
func (b Block) Excluded() string {
	reason, ok := strings.CutPrefix(b.Info, "sh ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(reason)
}

// Problem says what is wrong with the block's mark, empty for nothing.
func (b Block) Problem() string {
	mark, _, _ := strings.Cut(b.Info, " ")
	switch {
	case slices.Contains([]string{"bash", "shell", "console", "zsh", "shell-session"}, mark):
		return fmt.Sprintf("is marked %s: what a reader types is marked sh", mark)
	case b.Excluded() != "" && !slices.Contains(Reasons(), b.Excluded()):
		return fmt.Sprintf("is left out because of %q: the reasons are %s", b.Excluded(), strings.Join(Reasons(), ", "))
	case mark != "" && mark != "text":
		return ""
	}
	for line := range strings.Lines(b.Text) {
		if isCommand(line) {
			return fmt.Sprintf("has the command %q and is not marked sh", strings.TrimSpace(line))
		}
	}
	return ""
}

// isCommand reports whether a line looks like something to type.
func isCommand(line string) bool {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
	return len(words) > 1 && slices.Contains([]string{"bin/dakghar", "make", "aws", "sam", "curl"}, words[0])
}

// more stands for what differs from run to run, within a line or for lines.
const more = "…"

// Missing returns the lines of the expected output that what was shown does not
// have. Where a line has …, anything may stand. Space at both ends does not count,
// and however much there is between two words is as good as any other.
func (b Block) Missing(shown string) []string {
	var have, missing []string
	for line := range strings.Lines(shown) {
		have = append(have, spaced(line))
	}
	for line := range strings.Lines(b.Output) {
		line = spaced(line)
		if line == "" || line == more {
			continue
		}
		if !slices.ContainsFunc(have, func(there string) bool { return like(there, strings.Split(line, more)) }) {
			missing = append(missing, line)
		}
	}
	return missing
}

func spaced(line string) string { return strings.Join(strings.Fields(line), " ") }

// like reports whether a line is made of these parts, with anything between them.
func like(line string, parts []string) bool {
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(line, parts[0])
	if last == 0 {
		return ok && rest == ""
	}
	for _, part := range parts[1:last] {
		if ok {
			_, rest, ok = strings.Cut(rest, part)
		}
	}
	return ok && strings.HasSuffix(rest, parts[last])
}

// Parse returns the fenced blocks of a page in Markdown. The error is a fence
// that is not closed.
func Parse(page string) ([]Block, error) {
	p := parser{}
	number := 0
	for line := range strings.Lines(page) {
		number++
		p.line(number, line)
	}
	if p.open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", p.open.Line)
	}
	return p.blocks, nil
}

// parser is where the reading stands.
type parser struct {
	blocks []Block
	open   *Block // nil outside of blocks
	fence  string // what closes it
	indent string
	// last is the sh block that only blank lines have followed yet.
	last int
}

func (p *parser) line(number int, line string) {
	text := strings.TrimLeft(line, " \t")
	switch {
	case p.open == nil && strings.HasPrefix(text, "```"):
		info := strings.TrimLeft(text, "`")
		p.fence, p.indent = text[:len(text)-len(info)], line[:len(line)-len(text)]
		p.open = &Block{Line: number, Info: strings.TrimSpace(info)}
	case p.open == nil:
		if strings.TrimSpace(line) != "" {
			p.last = 0
		}
	case strings.TrimSpace(line) == p.fence:
		p.close()
	default:
		p.open.Text += strings.TrimPrefix(line, p.indent)
	}
}

// close ends the open block: an output belongs to the block before it.
func (p *parser) close() {
	b := *p.open
	p.open = nil
	if b.Info == "text" && p.last > 0 {
		p.blocks[p.last-1].Output = b.Text
	}
	p.blocks = append(p.blocks, b)
	p.last = 0
	if b.Runs() {
		p.last = len(p.blocks)
	}
}
