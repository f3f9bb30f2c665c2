package dynamodb

import "slices"

// keyRange is what a KeyConditionExpression selects: one partition and a range of
// encoded keys within it, from low (inclusive) to high (exclusive).
type keyRange struct {
	partition value
	low, high string
	sort      *sortCondition // nil if only the partition is named
}

// sortCondition is the part of a key condition about the sort attribute.
type sortCondition struct {
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
	found := map[string]*sortCondition{}
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
func keyTest(c condition) (string, *sortCondition, *apiError) {
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

func attributeTest(operator string, attribute operand, against ...operand) (string, *sortCondition, *apiError) {
	target, ok := attribute.(pathOperand)
	if !ok {
		return "", nil, invalid("KeyConditionExpressions cannot contain nested operations")
	}
	test := &sortCondition{operator: operator}
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

func newKeyRange(found map[string]*sortCondition, schema keySchema) (*keyRange, *apiError) {
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
	k := &keyRange{partition: onPartition.values[0]}
	prefix := string(schema.appendPartition(nil, k.partition))
	k.low, k.high = prefix, prefixEnd(prefix)
	if expected == 1 {
		return k, nil
	}
	if err := checkTestValues(schema.sort, onSort.values); err != nil {
		return nil, err
	}
	k.sort = onSort
	k.narrow(prefix)
	return k, nil
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

// narrow cuts the partition's range down to what the sort condition selects.
func (k *keyRange) narrow(prefix string) {
	bounds := make([]string, len(k.sort.values))
	for i, v := range k.sort.values {
		bounds[i] = string(appendKeyValue([]byte(prefix), v))
	}
	switch k.sort.operator {
	case "=":
		k.low, k.high = bounds[0], prefixEnd(bounds[0])
	case "<":
		k.high = bounds[0]
	case "<=":
		k.high = prefixEnd(bounds[0])
	case ">":
		k.low = prefixEnd(bounds[0])
	case ">=":
		k.low = bounds[0]
	case "BETWEEN":
		k.low, k.high = bounds[0], prefixEnd(bounds[1])
	case "begins_with":
		start := string(appendKeyPrefix([]byte(prefix), k.sort.values[0]))
		k.low, k.high = start, prefixEnd(start)
	}
}

// firstKeyPath is the first path that names an attribute of the key, if any.
func firstKeyPath(paths []path, schema keySchema) (string, bool) {
	i := slices.IndexFunc(paths, func(p path) bool { return schema.has(p[0].name) })
	if i < 0 {
		return "", false
	}
	return paths[i][0].name, true
}
