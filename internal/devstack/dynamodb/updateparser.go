package dynamodb

import "strings"

// update is a parsed UpdateExpression: at most one section of each kind.
type update struct {
	sets    []setAction
	removes []path
	adds    []setMember
	deletes []setMember
}

type setAction struct {
	path  path
	value updateValue
}

// setMember is an ADD or DELETE: a path and the literal that is added or taken.
type setMember struct {
	path  path
	value value
}

// updateValue is the right-hand side of SET, judged on the item as it was.
type updateValue interface {
	eval(it item) (value, *apiError)
}

type (
	storedValue struct{ path path }
	givenValue  struct{ value value }
	ifNotExists struct {
		path     path
		fallback updateValue
	}
	listAppend struct{ first, second updateValue }
	arithmetic struct {
		left, right updateValue
		minus       bool
	}
)

// paths lists what the update writes to.
func (u *update) paths() []path {
	var out []path
	for _, a := range u.sets {
		out = append(out, a.path)
	}
	out = append(out, u.removes...)
	for _, a := range u.adds {
		out = append(out, a.path)
	}
	for _, a := range u.deletes {
		out = append(out, a.path)
	}
	return out
}

// updateRule is the grammar of update expressions:
//
//	update  = { SET set {, set} | REMOVE path {, path} | ADD member {, member} | DELETE member {, member} }
//	set     = path '=' ( value [ ('+' | '-') value ] | list_append(value, value) )
//	member  = path :value
//	value   = path | :value | if_not_exists(path, value)
//
// with parentheses allowed around any value and any right-hand side.
func updateRule(p *parser) *update {
	u := &update{}
	seen := map[string]bool{}
	for p.peek().kind != tokenEnd {
		section := strings.ToUpper(p.peek().text)
		if p.peek().kind != tokenWord || !p.section(section, u, seen) {
			p.unexpected()
		}
	}
	if err := checkDisjoint(p.label, u.paths()); err != nil {
		panic(syntaxFailure{err})
	}
	return u
}

func (p *parser) section(name string, u *update, seen map[string]bool) bool {
	var rule func()
	switch name {
	case "SET":
		rule = func() { u.sets = append(u.sets, p.setAction()) }
	case "REMOVE":
		rule = func() { u.removes = append(u.removes, p.path()) }
	case "ADD":
		rule = func() { u.adds = append(u.adds, p.member("ADD", "N SS NS BS")) }
	case "DELETE":
		rule = func() { u.deletes = append(u.deletes, p.member("DELETE", "SS NS BS")) }
	default:
		return false
	}
	if seen[name] {
		p.fail("The %q section can only be used once in an update expression;", name)
	}
	seen[name] = true
	p.at++
	rule()
	for p.symbol(",") {
		rule()
	}
	return true
}

func (p *parser) setAction() setAction {
	target := p.path()
	p.expect("=")
	return setAction{target, p.updateSum().value}
}

// updateTerm is a parsed right-hand side, or part of one.
type updateTerm struct {
	value    updateValue
	enclosed bool // in parentheses of its own
}

func (p *parser) updateSum() updateTerm {
	left := p.updateTerm()
	operator := p.peek().text
	if !p.isSymbol("+") && !p.isSymbol("-") {
		return left
	}
	p.requirePart(left.value)
	p.at++
	right := p.updateTerm()
	p.requirePart(right.value)
	for _, part := range []updateTerm{left, right} {
		p.requireGiven(operator, part.value, "N")
	}
	return updateTerm{value: arithmetic{left.value, right.value, operator == "-"}}
}

// requirePart refuses what may only stand alone: a sum as a part of another, and
// list_append as a part of anything.
func (p *parser) requirePart(v updateValue) {
	switch v.(type) {
	case arithmetic:
		p.unexpected()
	case listAppend:
		p.fail("The function is not allowed to be used this way in an expression; function: list_append")
	}
}

func (p *parser) updateTerm() updateTerm {
	t := p.peek()
	switch {
	case t.kind == tokenValue:
		return updateTerm{value: givenValue(p.literal())}
	case p.symbol("("):
		inner := p.updateSum()
		p.expect(")")
		if inner.enclosed {
			p.fail("The expression has redundant parentheses;")
		}
		inner.enclosed = true
		return inner
	case t.kind == tokenWord && p.tokens[p.at+1].text == "(" && !isGrammarWord(t.text):
		p.at += 2
		return updateTerm{value: p.updateFunction(t.text)}
	}
	return updateTerm{value: storedValue{p.path()}}
}

func (p *parser) updateFunction(name string) updateValue {
	switch name {
	case "if_not_exists", "list_append":
	case "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size":
		p.fail("The function is not allowed in an update expression; function: %s", name)
	default:
		p.fail("Invalid function name; function: %s", name)
	}
	args := p.updateArguments()
	p.requireCount(name, 2, len(args))
	if name == "list_append" {
		p.requireGiven(name, args[0], "L")
		p.requireGiven(name, args[1], "L")
		return listAppend{args[0], args[1]}
	}
	stored, ok := args[0].(storedValue)
	if !ok {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
	}
	if other, ok := args[1].(storedValue); ok {
		p.requireDistinct(name, pathOperand(stored), pathOperand(other))
	}
	return ifNotExists{stored.path, args[1]}
}

// updateArguments reads values up to the closing parenthesis.
func (p *parser) updateArguments() []updateValue {
	var out []updateValue
	for {
		arg := p.updateTerm().value
		p.requirePart(arg)
		out = append(out, arg)
		if !p.symbol(",") {
			p.expect(")")
			return out
		}
	}
}

func (p *parser) requireGiven(operator string, v updateValue, wires string) {
	if given, ok := v.(givenValue); ok {
		p.requireType(operator, literal(given), wires)
	}
}

func (p *parser) member(section, wires string) setMember {
	target := p.path()
	if p.peek().kind != tokenValue {
		p.unexpected()
	}
	v := p.literal().value
	for _, wire := range strings.Fields(wires) {
		if v.wire() == wire {
			return setMember{target, v}
		}
	}
	p.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", section, longTypeName(v), section)
	return setMember{}
}

// longTypeName is how the service spells types in this one message.
func longTypeName(v value) string {
	return map[string]string{
		"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL",
		"L": "LIST", "M": "MAP", "SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET",
	}[v.wire()]
}
