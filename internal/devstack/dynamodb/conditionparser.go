package dynamodb

import "slices"

// term is what stands where a condition or an operand may stand; parentheses are
// allowed around both, so which of them it is shows only afterwards.
type term struct {
	condition condition
	operand   operand
	enclosed  bool // in parentheses of its own
}

// conditionRule is the grammar of condition and filter expressions:
//
//	or         = and { OR and }
//	and        = not { AND not }
//	not        = [ NOT ] comparison
//	comparison = term [ operator term | BETWEEN term AND term | IN ( terms ) ]
//	term       = path | :value | function ( terms ) | ( or )
func conditionRule(p *parser) condition {
	return p.asCondition(p.or())
}

// asCondition requires a condition; an operand on its own is a syntax error, and
// size() on its own is named, as the service does.
func (p *parser) asCondition(t term) condition {
	if t.condition == nil {
		if _, ok := t.operand.(sizeOperand); ok {
			p.fail("The function is not allowed to be used this way in an expression; function: size")
		}
		p.unexpected()
	}
	return t.condition
}

func (p *parser) asOperand(t term) operand {
	if t.operand == nil {
		p.unexpected()
	}
	return t.operand
}

func (p *parser) or() term {
	left := p.and()
	for p.keyword("OR") {
		left = term{condition: orCondition{p.asCondition(left), p.asCondition(p.and())}}
	}
	return left
}

func (p *parser) and() term {
	left := p.not()
	for p.keyword("AND") {
		left = term{condition: andCondition{p.asCondition(left), p.asCondition(p.not())}}
	}
	return left
}

func (p *parser) not() term {
	if p.keyword("NOT") {
		return term{condition: notCondition{p.asCondition(p.not())}}
	}
	return p.comparison()
}

var comparators = []string{"=", "<>", "<", "<=", ">", ">="}

func (p *parser) comparison() term {
	left := p.term()
	if t := p.peek(); t.kind == tokenSymbol && slices.Contains(comparators, t.text) {
		leftOperand := p.asOperand(left)
		p.at++
		return p.compared(t.text, leftOperand, p.asOperand(p.term()))
	}
	switch {
	case left.operand == nil:
	case p.keyword("BETWEEN"):
		return p.between(left.operand)
	case p.keyword("IN"):
		return p.in(left.operand)
	}
	return left
}

func (p *parser) compared(operator string, left, right operand) term {
	if operator != "=" && operator != "<>" {
		p.requireType(operator, left, "S N B")
		p.requireType(operator, right, "S N B")
	}
	p.requireDistinct(operator, left, right)
	return term{condition: comparison{operator, left, right}}
}

func (p *parser) between(o operand) term {
	low := p.asOperand(p.term())
	if !p.keyword("AND") {
		p.unexpected()
	}
	high := p.asOperand(p.term())
	for _, each := range []operand{o, low, high} {
		p.requireType("BETWEEN", each, "S N B")
	}
	p.requireDistinct("BETWEEN", o, low, high)
	p.checkBounds(low, high)
	return term{condition: betweenCondition{o, low, high}}
}

// checkBounds refuses literal bounds that no value can lie between.
func (p *parser) checkBounds(low, high operand) {
	l, lowOK := low.(literal)
	h, highOK := high.(literal)
	if !lowOK || !highOK {
		return
	}
	order, ok := compare(l.value, h.value)
	const bounds = "; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s"
	switch {
	case !ok:
		p.fail("The BETWEEN operator requires same data type for lower and upper bounds"+bounds, describe(l.value), describe(h.value))
	case order > 0:
		p.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound"+bounds, describe(l.value), describe(h.value))
	}
}

// describe prints a scalar for a message about an expression's own literals.
func describe(v value) string {
	switch v := v.(type) {
	case text:
		return "{S:" + string(v) + "}"
	case number:
		return "{N:" + v.String() + "}"
	}
	return "{" + v.wire() + "}"
}

func (p *parser) in(o operand) term {
	p.expect("(")
	choices := p.operands()
	if len(choices) > operandsMax {
		p.fail("Operator or function has too many operands; operator or function: IN, number of operands: %d", len(choices))
	}
	p.requireDistinct("IN", o, choices...)
	return term{condition: inCondition{o, choices}}
}

// operands reads terms up to the closing parenthesis.
func (p *parser) operands() []operand {
	out := []operand{p.asOperand(p.term())}
	for p.symbol(",") {
		out = append(out, p.asOperand(p.term()))
	}
	p.expect(")")
	return out
}

func (p *parser) term() term {
	t := p.peek()
	switch {
	case t.kind == tokenValue:
		return term{operand: p.literal()}
	case p.symbol("("):
		return p.enclosed()
	case t.kind == tokenWord && p.tokens[p.at+1].text == "(" && !isGrammarWord(t.text):
		p.at += 2
		return p.function(t.text)
	}
	return term{operand: pathOperand{p.path()}}
}

func (p *parser) enclosed() term {
	inner := p.or()
	p.expect(")")
	if inner.enclosed {
		p.fail("The expression has redundant parentheses;")
	}
	inner.enclosed = true
	return inner
}

func (p *parser) function(name string) term {
	count := map[string]int{
		"attribute_exists": 1, "attribute_not_exists": 1, "size": 1,
		"attribute_type": 2, "begins_with": 2, "contains": 2,
	}[name]
	if count == 0 {
		if name == "if_not_exists" || name == "list_append" {
			p.fail("The function is not allowed in a condition expression; function: %s", name)
		}
		p.fail("Invalid function name; function: %s", name)
	}
	args := p.operands()
	p.requireCount(name, count, len(args))
	p.requireDistinct(name, args[0], args[1:]...)
	return p.built(name, args)
}

func (p *parser) requireCount(name string, wanted, got int) {
	if wanted != got {
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, got)
	}
}

func (p *parser) built(name string, args []operand) term {
	switch name {
	case "attribute_exists", "attribute_not_exists":
		return term{condition: existsCondition{p.requirePath(name, args[0]), name == "attribute_exists"}}
	case "size":
		p.requireType(name, args[0], "S B L M SS BS NS")
		return term{operand: sizeOperand{args[0]}}
	case "attribute_type":
		p.requireType(name, args[1], "S")
		return term{condition: typeCondition{args[0], p.typeName(args[1])}}
	case "begins_with":
		p.requireType(name, args[0], "S B")
		p.requireType(name, args[1], "S B")
		return term{condition: beginsWithCondition{args[0], args[1]}}
	}
	return term{condition: containsCondition{args[0], args[1]}}
}

func (p *parser) requirePath(name string, o operand) path {
	found, ok := o.(pathOperand)
	if !ok {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
	}
	return found.path
}

// typeName is the second operand of attribute_type, which must be a literal.
func (p *parser) typeName(o operand) string {
	l, ok := o.(literal)
	if !ok {
		p.fail("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: path")
	}
	wire := string(l.value.(text))
	if !slices.Contains([]string{"B", "BOOL", "BS", "L", "M", "N", "NS", "NULL", "S", "SS"}, wire) {
		p.fail("Invalid attribute type name found; type: %s, valid types: {B,BOOL,BS,L,M,N,NS,NULL,S,SS}", wire)
	}
	return wire
}
