package dynamodb

// condition is a parsed ConditionExpression or FilterExpression.
type condition interface {
	// holds judges an item; an absent item is judged as one without attributes.
	holds(it item) bool
}

// operand is something with a value inside a condition.
type operand interface {
	// eval returns false where the item has no such value.
	eval(it item) (value, bool)
}

type (
	pathOperand struct{ path path }
	literal     struct{ value value }
	sizeOperand struct{ of operand }

	andCondition struct{ left, right condition }
	orCondition  struct{ left, right condition }
	notCondition struct{ inner condition }
	comparison   struct {
		operator    string
		left, right operand
	}
	betweenCondition struct{ operand, low, high operand }
	inCondition      struct {
		operand operand
		choices []operand
	}
	existsCondition struct {
		path   path
		wanted bool
	}
	typeCondition struct {
		operand operand
		wire    string
	}
	beginsWithCondition struct{ whole, prefix operand }
	containsCondition   struct{ container, element operand }
)

func (o pathOperand) eval(it item) (value, bool) { return o.path.get(it) }
func (o literal) eval(item) (value, bool)        { return o.value, true }

func (o sizeOperand) eval(it item) (value, bool) {
	v, ok := o.of.eval(it)
	if !ok {
		return nil, false
	}
	length, ok := measure(v)
	return wholeNumber(length), ok
}

func (c andCondition) holds(it item) bool { return c.left.holds(it) && c.right.holds(it) }
func (c orCondition) holds(it item) bool  { return c.left.holds(it) || c.right.holds(it) }
func (c notCondition) holds(it item) bool { return !c.inner.holds(it) }

func (c comparison) holds(it item) bool {
	left, leftOK := c.left.eval(it)
	right, rightOK := c.right.eval(it)
	both := leftOK && rightOK
	switch c.operator {
	case "=":
		return both && equal(left, right)
	case "<>":
		return !both || !equal(left, right)
	}
	if !both {
		return false
	}
	order, ok := compare(left, right)
	return ok && ordersAs(order, c.operator)
}

func ordersAs(order int, operator string) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (c betweenCondition) holds(it item) bool {
	return comparison{">=", c.operand, c.low}.holds(it) && comparison{"<=", c.operand, c.high}.holds(it)
}

func (c inCondition) holds(it item) bool {
	for _, choice := range c.choices {
		if (comparison{"=", c.operand, choice}).holds(it) {
			return true
		}
	}
	return false
}

func (c existsCondition) holds(it item) bool {
	_, ok := c.path.get(it)
	return ok == c.wanted
}

func (c typeCondition) holds(it item) bool {
	v, ok := c.operand.eval(it)
	return ok && v.wire() == c.wire
}

func (c beginsWithCondition) holds(it item) bool {
	whole, wholeOK := c.whole.eval(it)
	prefix, prefixOK := c.prefix.eval(it)
	return wholeOK && prefixOK && beginsWith(whole, prefix)
}

func (c containsCondition) holds(it item) bool {
	container, containerOK := c.container.eval(it)
	element, elementOK := c.element.eval(it)
	return containerOK && elementOK && contains(container, element)
}
