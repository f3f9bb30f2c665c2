package dynamodb

import (
	"slices"
	"strconv"
	"strings"
)

// expressionBytesMax and operandsMax (of IN) are the service's quotas.
const (
	expressionBytesMax = 4096
	operandsMax        = 100
	listIndexMax       = 1 << 20
)

// parser is a recursive-descent parser for one expression. It panics with
// syntaxFailure on the first fault; parse turns that into an error, so that the
// grammar below reads as the grammar.
type parser struct {
	label  string // the request member, which every message names
	source string
	tokens []token
	at     int
	bound  *bindings
	paths  []path // every document path met, for checks against the key schema
}

type syntaxFailure struct{ err *apiError }

// parse runs a grammar rule over the whole source.
func parse[T any](label, source string, bound *bindings, rule func(*parser) T) (out T, p *parser, err *apiError) {
	p = &parser{label: label, source: source, bound: bound}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case syntaxFailure:
			err = r.err
		default:
			panic(r)
		}
	}()
	if len(source) > expressionBytesMax {
		p.fail("Expression size has exceeded the maximum allowed size;  expression size: %d", len(source))
	}
	p.tokens = tokenize(source)
	if p.peek().kind == tokenEnd {
		p.fail("The expression can not be empty;")
	}
	out = rule(p)
	if p.peek().kind != tokenEnd {
		p.unexpected()
	}
	return out, p, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(syntaxFailure{invalid("Invalid "+p.label+": "+format, args...)})
}

// unexpected names the current token with its neighbours, as the service does.
func (p *parser) unexpected() {
	here := p.tokens[p.at]
	start := p.tokens[max(p.at-1, 0)].start
	end := p.tokens[min(p.at+1, len(p.tokens)-1)].end
	p.fail("Syntax error; token: %q, near: %q", here.text, strings.TrimSpace(p.source[start:end]))
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

func (p *parser) isSymbol(text string) bool {
	t := p.peek()
	return t.kind == tokenSymbol && t.text == text
}

// symbol consumes the given punctuation if it comes next.
func (p *parser) symbol(text string) bool {
	if !p.isSymbol(text) {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) {
	if !p.symbol(text) {
		p.unexpected()
	}
}

// keyword consumes the given word, in any case, if it comes next.
func (p *parser) keyword(word string) bool {
	if t := p.peek(); t.kind == tokenWord && strings.EqualFold(t.text, word) {
		p.at++
		return true
	}
	return false
}

// isGrammarWord tells the words that can never be names, as they are tokens of the
// grammar itself.
func isGrammarWord(word string) bool {
	switch strings.ToUpper(word) {
	case "AND", "OR", "NOT", "BETWEEN", "IN", "SET", "ADD", "REMOVE", "DELETE":
		return true
	}
	return false
}

// path reads name ( '.' name | '[' digits ']' )*.
func (p *parser) path() path {
	out := path{{name: p.pathName()}}
	for {
		switch {
		case p.symbol("."):
			out = append(out, step{name: p.pathName()})
		case p.symbol("["):
			out = append(out, step{index: p.listIndex(), isIndex: true})
			p.expect("]")
		default:
			if len(out) > valueDepthMax {
				p.fail("The document path has too many nesting elements; nesting level: %d", len(out))
			}
			p.paths = append(p.paths, out)
			return out
		}
	}
}

func (p *parser) pathName() string {
	t := p.peek()
	switch {
	case t.kind == tokenName:
		p.at++
		name, ok := p.bound.names[t.text]
		if !ok {
			p.fail("An expression attribute name used in the document path is not defined; attribute name: %s", t.text)
		}
		p.bound.usedNames[t.text] = true
		return name
	case t.kind == tokenWord && !isGrammarWord(t.text):
		p.at++
		if p.bound.reserved[strings.ToUpper(t.text)] {
			p.fail("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		return t.text
	}
	p.unexpected()
	return ""
}

func (p *parser) listIndex() int {
	t := p.peek()
	if t.kind != tokenDigits {
		p.unexpected()
	}
	p.at++
	index, err := strconv.Atoi(t.text)
	if err != nil || index > listIndexMax {
		p.fail("List index is not within the allowable range; index: [%s]", t.text)
	}
	return index
}

func (p *parser) literal() literal {
	t := p.next()
	v, ok := p.bound.values[t.text]
	if !ok {
		p.fail("An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	p.bound.usedValues[t.text] = true
	return literal{v}
}

// projectionRule reads path ( ',' path )*.
func projectionRule(p *parser) []path {
	out := []path{p.path()}
	for p.symbol(",") {
		out = append(out, p.path())
	}
	return out
}

// requireType refuses an operand whose type is known and never taken. What a path
// holds is only known, and then only makes the condition false, at evaluation.
func (p *parser) requireType(operator string, o operand, wires string) {
	var wire string
	switch o := o.(type) {
	case literal:
		wire = o.value.wire()
	case sizeOperand:
		wire = "N"
	default:
		return
	}
	if !slices.Contains(strings.Fields(wires), wire) {
		p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, wire)
	}
}

// requireDistinct refuses a comparison of a path with itself.
func (p *parser) requireDistinct(operator string, first operand, others ...operand) {
	f, ok := first.(pathOperand)
	if !ok {
		return
	}
	for _, o := range others {
		if other, ok := o.(pathOperand); ok && f.path.equal(other.path) {
			p.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %v", operator, f.path)
		}
	}
}
