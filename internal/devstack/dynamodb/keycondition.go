package dynamodb

import "slices"

// keyRange is what a KeyConditionExpression selects: a range of encoded keys within
// one partition, from low (inclusive) to high (exclusive).
type keyRange struct{ low, high string }

// attributeCondition is the part of a key condition about one attribute.
type attributeCondition struct {
	operator string // = < <= > >= BETWEEN begins_with
	values   []value
}

// keyCondition reads a parsed condition as a key condition: one equality on the
// partition attribute and at most one other test of the sort attribute.
func keyCondition(parsed condition, paths []path, schema keySchema) (*keyRange, *apiError) {
	if err := checkKeyPaths(paths, schema); err != nil {
		return nil, err
	}
	parts, err := conjuncts(parsed)
	if err != nil {
		return nil, err
	}
	found := map[string]*attributeCondition{}
	for _, part := range parts {
		name, test, err := keyTest(part)
		if err != nil {
			return nil, err
		}
		if found[name] != nil {
			return nil, invalid("KeyConditionExpressions must only contain one condition per key")
		}
		found[name] = test
	}
	return newKeyRange(found, schema)
}

// checkKeyPaths refuses a path into a key attribute: those are scalars.
func checkKeyPaths(paths []path, schema keySchema) *apiError {
	for _, p := range paths {
		if len(p) > 1 && schema.has(p[0].name) {
			return invalid("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s", p[0].name)
		}
	}
	return nil
}

// conjuncts flattens ANDs; every other connective is refused by name.
func conjuncts(c condition) ([]condition, *apiError) {
	switch c := c.(type) {
	case andCondition:
		left, err := conjuncts(c.left)
		if err != nil {
			return nil, err
		}
		right, err := conjuncts(c.right)
		return append(left, right...), err
	case orCondition:
		return nil, invalidKeyOperator("OR")
	case notCondition:
		return nil, invalidKeyOperator("NOT")
	}
	return []condition{c}, nil
}

func invalidKeyOperator(name string) *apiError {
	return invalid("Invalid operator used in KeyConditionExpression: %s", name)
}

// keyTest reads one conjunct as a test of one attribute against literals.
func keyTest(c condition) (string, *attributeCondition, *apiError) {
	switch c := c.(type) {
	case comparison:
		if c.operator == "<>" {
			return "", nil, invalidKeyOperator("<>")
		}
		if _, turned := c.left.(literal); turned {
			c = comparison{mirrored(c.operator), c.right, c.left}
		}
		return attributeTest(c.operator, c.left, c.right)
	case betweenCondition:
		return attributeTest("BETWEEN", c.operand, c.low, c.high)
	case beginsWithCondition:
		return attributeTest("begins_with", c.whole, c.prefix)
	case inCondition:
		return "", nil, invalidKeyOperator("IN")
	case existsCondition:
		if !c.wanted {
			return "", nil, invalidKeyOperator("attribute_not_exists")
		}
		return "", nil, invalidKeyOperator("attribute_exists")
	case typeCondition:
		return "", nil, invalidKeyOperator("attribute_type")
	}
	return "", nil, invalidKeyOperator("contains")
}

func mirrored(operator string) string {
	switch operator {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	}
	return operator
}

func attributeTest(operator string, attribute operand, against ...operand) (string, *attributeCondition, *apiError) {
	target, ok := attribute.(pathOperand)
	if !ok {
		return "", nil, invalid("KeyConditionExpressions cannot contain nested operations")
	}
	test := &attributeCondition{operator: operator}
	for _, o := range against {
		switch o := o.(type) {
		case literal:
			test.values = append(test.values, o.value)
		case pathOperand:
			return "", nil, invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
		default:
			return "", nil, invalid("KeyConditionExpressions cannot contain nested operations")
		}
	}
	return target.path[0].name, test, nil
}

func newKeyRange(found map[string]*attributeCondition, schema keySchema) (*keyRange, *apiError) {
	onPartition := found[schema.partition.name]
	if onPartition == nil {
		return nil, invalid("Query condition missed key schema element: %s", schema.partition.name)
	}
	if onPartition.operator != "=" {
		return nil, invalid("Query key condition not supported")
	}
	onSort := found[schema.sort.name]
	expected := 1
	if schema.hasSort() && onSort != nil {
		expected = 2
	}
	switch {
	case len(found) > 2:
		return nil, invalid("Conditions can be of length 1 or 2 only")
	case len(found) != expected && schema.hasSort():
		return nil, invalid("Query condition missed key schema element: %s", schema.sort.name)
	case len(found) != expected:
		return nil, invalid("Query key condition not supported")
	}
	if err := checkTestValues(schema.partition, onPartition.values); err != nil {
		return nil, err
	}
	prefix := string(schema.appendPartition(nil, onPartition.values[0]))
	if expected == 1 {
		return &keyRange{prefix, prefixEnd(prefix)}, nil
	}
	if err := checkTestValues(schema.sort, onSort.values); err != nil {
		return nil, err
	}
	return onSort.within(prefix), nil
}

func checkTestValues(a keyAttribute, values []value) *apiError {
	for _, v := range values {
		if v.wire() != a.wire {
			return invalid(messageInvalid + "Condition parameter type does not match schema type")
		}
		if err := checkKeyValue(a, v); err != nil {
			return err
		}
	}
	return nil
}

// within is the range of a partition, given by its encoded prefix, that the test of
// the sort attribute selects.
func (c *attributeCondition) within(prefix string) *keyRange {
	bounds := make([]string, len(c.values))
	for i, v := range c.values {
		bounds[i] = string(appendKeyValue([]byte(prefix), v))
	}
	switch c.operator {
	case "=":
		return &keyRange{bounds[0], prefixEnd(bounds[0])}
	case "<":
		return &keyRange{prefix, bounds[0]}
	case "<=":
		return &keyRange{prefix, prefixEnd(bounds[0])}
	case ">":
		return &keyRange{prefixEnd(bounds[0]), prefixEnd(prefix)}
	case ">=":
		return &keyRange{bounds[0], prefixEnd(prefix)}
	case "BETWEEN":
		return &keyRange{bounds[0], prefixEnd(bounds[1])}
	}
	start := string(appendKeyPrefix([]byte(prefix), c.values[0])) // begins_with
	return &keyRange{start, prefixEnd(start)}
}

// firstKeyPath is the first path that names an attribute of the key, if any.
func firstKeyPath(paths []path, schema keySchema) (string, bool) {
	i := slices.IndexFunc(paths, func(p path) bool { return schema.has(p[0].name) })
	if i < 0 {
		return "", false
	}
	return paths[i][0].name, true
}
