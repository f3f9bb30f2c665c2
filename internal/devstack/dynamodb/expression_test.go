package dynamodb

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is the item that the expressions below are judged on.
func sample() item {
	return item{
		"pk": text("a"), "n": mustNumber("5"), "s": text("grüße"), "b": binary("\x00\x01"),
		"flag": boolean(true), "nil": null{},
		"l":  list{mustNumber("0"), text("one"), object{"deep": mustNumber("7")}},
		"m":  object{"x": text("y"), "box": object{"z": mustNumber("3")}},
		"ss": textSet{"a", "b"}, "ns": numberSet{mustNumber("1"), mustNumber("2")},
	}
}

func mustNumber(s string) number {
	n, err := parseNumber(s)
	if err != nil {
		panic(err)
	}
	return n
}

// values are the placeholders that the expressions below use.
func values() map[string]value {
	return map[string]value{
		":5": mustNumber("5"), ":7": mustNumber("7.0"), ":0": mustNumber("0"), ":10": mustNumber("10"), ":1": mustNumber("1"),
		":y": text("y"), ":gr": text("gr"), ":a": text("a"), ":S": text("S"), ":Q": text("Q"), ":t": boolean(true),
		":list": list{mustNumber("9")}, ":set": textSet{"b", "c"}, ":ab": textSet{"a", "b"}, ":nums": numberSet{mustNumber("1")},
	}
}

// reservedOnce spares the fuzzer the building of the list.
var reservedOnce = sync.OnceValue(newReserved)

func bind() *bindings {
	return &bindings{
		names:      map[string]string{"#n": "n", "#name": "name", "#dot": "a.b"},
		values:     values(),
		usedNames:  map[string]bool{},
		usedValues: map[string]bool{},
		reserved:   reservedOnce(),
	}
}

func TestAConditionHolds(t *testing.T) {
	tests := map[string]bool{
		"n = :5":                             true,
		"#n = :5":                            true,
		"n <> :5":                            false,
		"n < :10 AND n > :0":                 true,
		"n >= :5 and n <= :5":                true,
		":5 = n":                             true,
		"n = :y":                             false,
		"n < :y":                             false,
		"absent = :5":                        false,
		"absent <> :5":                       true,
		"absent < :5":                        false,
		"NOT absent = :5":                    true,
		"not n = :5":                         false,
		"NOT NOT n = :5":                     true,
		"n = :0 OR n = :5 AND n = :0":        false,
		"n = :5 OR n = :0 AND n = :0":        true,
		"(n = :5 OR n = :0) AND n = :0":      false,
		"NOT n = :0 AND n = :5":              true,
		"n BETWEEN :0 AND :10":               true,
		"n between :5 and :5 and n = :5":     true,
		"n BETWEEN absent AND :10":           false,
		"n IN (:0, :5)":                      true,
		"n IN (:0, :10)":                     false,
		"absent IN (:0)":                     false,
		"attribute_exists(n)":                true,
		"attribute_exists(m.box.z)":          true,
		"attribute_exists(m.box.q)":          false,
		"attribute_exists(l[2].deep)":        true,
		"attribute_exists(l[3])":             false,
		"attribute_exists(n.x)":              false,
		"attribute_not_exists(absent)":       true,
		"attribute_not_exists(n)":            false,
		"attribute_type(s, :S)":              true,
		"attribute_type(n, :S)":              false,
		"begins_with(s, :gr)":                true,
		"begins_with(n, :gr)":                false,
		"contains(s, :gr)":                   true,
		"contains(ss, :a)":                   true,
		"contains(ss, :y)":                   false,
		"contains(l, :0)":                    true,
		"contains(ns, :1)":                   true,
		"contains(n, :5)":                    false,
		"size(s) = :5":                       true, // characters, not bytes
		"size(b) < :5":                       true,
		"size(l) > :0":                       true,
		"size(n) > :0":                       false,
		"size(absent) > :0":                  false,
		"l[2].deep = :7":                     true,
		"m.x = :y":                           true,
		"(n) = (:5)":                         true,
		"((n) = :5) AND (NOT (n = :0))":      true,
		"attribute_not_exists(pk) OR n = :5": true,
	}
	got := map[string]bool{}
	for source := range tests {
		parsed, _, err := parse("ConditionExpression", source, bind(), conditionRule)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		got[source] = parsed.holds(sample())
	}
	if diff := cmp.Diff(tests, got); diff != "" {
		t.Error(diff)
	}
}

// The messages are the service's own; all but the reserved word size were
// compared with DynamoDB Local 3.3.1, which does not know that one.
func TestAConditionIsRefusedWithTheServicesWords(t *testing.T) {
	tests := map[string]string{
		"":                              `The expression can not be empty;`,
		"  ":                            `The expression can not be empty;`,
		"n":                             `Syntax error; token: "<EOF>", near: "n"`,
		"n == :5":                       `Syntax error; token: "=", near: "== :5"`,
		"n = :5 AND":                    `Syntax error; token: "<EOF>", near: "AND"`,
		"(n = :5":                       `Syntax error; token: "<EOF>", near: ":5"`,
		"n = :5)":                       `Syntax error; token: ")", near: ":5)"`,
		"n != :5":                       `Syntax error; token: "!", near: "n !="`,
		"n = 5":                         `Syntax error; token: "5", near: "= 5"`,
		"n[a] = :5":                     `Syntax error; token: "a", near: "[a]"`,
		"n[-1] = :5":                    `Syntax error; token: "-", near: "[-1"`,
		"n.[0] = :5":                    `Syntax error; token: "[", near: ".[0"`,
		"a-b = :5":                      `Syntax error; token: "-", near: "a-b"`,
		"_a = :5":                       `Syntax error; token: "_", near: "_a"`,
		"((n = :5))":                    `The expression has redundant parentheses;`,
		"name = :5":                     `Attribute name is a reserved keyword; reserved keyword: name`,
		"m.status = :5":                 `Attribute name is a reserved keyword; reserved keyword: status`,
		"size = :5":                     `Attribute name is a reserved keyword; reserved keyword: size`,
		"n = :nope":                     `An expression attribute value used in expression is not defined; attribute value: :nope`,
		"#nope = :5":                    `An expression attribute name used in the document path is not defined; attribute name: #nope`,
		"size(n)":                       `The function is not allowed to be used this way in an expression; function: size`,
		"foo(n)":                        `Invalid function name; function: foo`,
		"if_not_exists(n, :5)":          `The function is not allowed in a condition expression; function: if_not_exists`,
		"size(n, s) = :5":               `Incorrect number of operands for operator or function; operator or function: size, number of operands: 2`,
		"attribute_exists(:5)":          `Operator or function requires a document path; operator or function: attribute_exists`,
		"attribute_exists(size(n))":     `Operator or function requires a document path; operator or function: attribute_exists`,
		"n < :t":                        `Incorrect operand type for operator or function; operator or function: <, operand type: BOOL`,
		"begins_with(n, :5)":            `Incorrect operand type for operator or function; operator or function: begins_with, operand type: N`,
		"attribute_type(n, :5)":         `Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N`,
		"attribute_type(n, :Q)":         `Invalid attribute type name found; type: Q, valid types: {B,BOOL,BS,L,M,N,NS,NULL,S,SS}`,
		"n = n":                         `The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]`,
		"contains(m.x, m.x)":            `The first operand must be distinct from the remaining operands for this operator or function; operator: contains, first operand: [m, x]`,
		"n BETWEEN :10 AND :0":          `The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:10}, upper bound operand: AttributeValue: {N:0}`,
		"n BETWEEN :0 AND :a":           `The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:0}, upper bound operand: AttributeValue: {S:a}`,
		"a" + strings.Repeat("b", 5000): `Expression size has exceeded the maximum allowed size;  expression size: 5001`,
	}
	got := map[string]string{}
	for source := range tests {
		_, _, err := parse("ConditionExpression", source, bind(), conditionRule)
		if err == nil {
			t.Errorf("%s is accepted", source)
			continue
		}
		got[source] = strings.TrimPrefix(err.message, "Invalid ConditionExpression: ")
	}
	if diff := cmp.Diff(tests, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnUpdateChangesExactlyWhatItNames(t *testing.T) {
	tests := []struct {
		source string
		change item // the attributes that differ afterwards; nil for one that is gone
	}{
		{"SET n = n + :5", item{"n": mustNumber("10")}},
		{"SET n = :5 - n", item{"n": mustNumber("0")}},
		{"SET n = (n - :10)", item{"n": mustNumber("-5")}},
		{"SET born = if_not_exists(born, :0) + :1", item{"born": mustNumber("1")}},
		{"SET born = if_not_exists(n, :0)", item{"born": mustNumber("5")}},
		{"SET n = s, s = n", item{"n": text("grüße"), "s": mustNumber("5")}},
		{"SET l = list_append(l, :list)", item{"l": list{mustNumber("0"), text("one"), object{"deep": mustNumber("7")}, mustNumber("9")}}},
		{"SET l = list_append(:list, if_not_exists(l, :list))", item{"l": list{mustNumber("9"), mustNumber("0"), text("one"), object{"deep": mustNumber("7")}}}},
		{"SET l[0] = :y, l[9] = :y", item{"l": list{text("y"), text("one"), object{"deep": mustNumber("7")}, text("y")}}},
		{"SET l[2].deep = :y", item{"l": list{mustNumber("0"), text("one"), object{"deep": text("y")}}}},
		{"SET m.box.q = :5", item{"m": object{"x": text("y"), "box": object{"z": mustNumber("3"), "q": mustNumber("5")}}}},
		{"SET m = :5", item{"m": mustNumber("5")}},
		{"SET #name = :5, #dot = :y", item{"name": mustNumber("5"), "a.b": text("y")}},
		{"REMOVE n, m.x", item{"n": nil, "m": object{"box": object{"z": mustNumber("3")}}}},
		{"REMOVE absent, m.absent, l[9]", item{}},
		{"REMOVE l[0], l[1]", item{"l": list{object{"deep": mustNumber("7")}}}},
		{"REMOVE l[0] SET l[1] = :y", item{"l": list{text("y"), object{"deep": mustNumber("7")}}}},
		{"ADD n :5, fresh :1", item{"n": mustNumber("10"), "fresh": mustNumber("1")}},
		{"ADD ss :set", item{"ss": textSet{"a", "b", "c"}}},
		{"ADD newset :set", item{"newset": textSet{"b", "c"}}},
		{"ADD ns :nums", item{}},
		{"ADD m.tally :1", item{"m": object{"x": text("y"), "box": object{"z": mustNumber("3")}, "tally": mustNumber("1")}}},
		{"DELETE ss :set", item{"ss": textSet{"a"}}},
		{"DELETE ss :ab", item{"ss": nil}},
		{"DELETE absent :ab", item{}},
		{"set n = :0 remove s add fresh :1 delete ss :set", item{"n": mustNumber("0"), "s": nil, "fresh": mustNumber("1"), "ss": textSet{"a"}}},
	}
	for _, test := range tests {
		u, _, err := parse("UpdateExpression", test.source, bind(), updateRule)
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		before := sample()
		after, err := u.apply(before)
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		if diff := compareValues(sample(), before); diff != "" {
			t.Errorf("%s changed its input: %s", test.source, diff)
		}
		want := sample()
		for name, v := range test.change {
			want[name] = v
			if v == nil {
				delete(want, name)
			}
		}
		if diff := compareValues(want, after); diff != "" {
			t.Errorf("%s: %s", test.source, diff)
		}
	}
}

func compareValues(a, b value) string {
	return cmp.Diff(a, b, cmp.AllowUnexported(number{}))
}

func TestAnUpdateIsRefusedWithTheServicesWords(t *testing.T) {
	const invalidPrefix = "Invalid UpdateExpression: "
	tests := map[string]string{
		"":                              invalidPrefix + `The expression can not be empty;`,
		"SET":                           invalidPrefix + `Syntax error; token: "<EOF>", near: "SET"`,
		"SET n :5":                      invalidPrefix + `Syntax error; token: ":5", near: "n :5"`,
		"SET n = :5,":                   invalidPrefix + `Syntax error; token: "<EOF>", near: ","`,
		"UPSERT n = :5":                 invalidPrefix + `Syntax error; token: "UPSERT", near: "UPSERT n"`,
		"SET n = :5 + :5 + :5":          invalidPrefix + `Syntax error; token: "+", near: ":5 + :5"`,
		"ADD n m":                       invalidPrefix + `Syntax error; token: "m", near: "n m"`,
		"SET n = :5 SET s = :5":         invalidPrefix + `The "SET" section can only be used once in an update expression;`,
		"SET n = size(s)":               invalidPrefix + `The function is not allowed in an update expression; function: size`,
		"SET n = foo(s)":                invalidPrefix + `Invalid function name; function: foo`,
		"SET n = if_not_exists(:5, n)":  invalidPrefix + `Operator or function requires a document path; operator or function: if_not_exists`,
		"SET n = if_not_exists(n)":      invalidPrefix + `Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1`,
		"SET n = n + :y":                invalidPrefix + `Incorrect operand type for operator or function; operator or function: +, operand type: S`,
		"SET l = list_append(l, :5)":    invalidPrefix + `Incorrect operand type for operator or function; operator or function: list_append, operand type: N`,
		"ADD n :y":                      invalidPrefix + `Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND`,
		"DELETE n :5":                   invalidPrefix + `Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND`,
		"SET n = :5, n = :5":            invalidPrefix + `Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [n], path two: [n]`,
		"SET m = :5 REMOVE m.x":         invalidPrefix + `Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m], path two: [m, x]`,
		"SET m.x = :5, m[0] = :5":       invalidPrefix + `Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [m, x], path two: [m, [0]]`,
		"SET a = absent":                messageAbsent,
		"SET a = absent + :5":           messageAbsent,
		"SET a = s + :5":                messageOperand,
		"SET a = list_append(s, :list)": messageOperand,
		"SET absent.x = :5":             messagePath,
		"SET s.x = :5":                  messagePath,
		"SET m[0] = :5":                 messagePath,
		"SET l.x = :5":                  messagePath,
		"REMOVE absent.x":               messagePath,
		"ADD s :5":                      messageOperand,
		"ADD ss :nums":                  messageOperand,
		"ADD absent.x :5":               messagePath,
		"DELETE n :set":                 messageOperand,
		"DELETE absent.x :set":          messagePath,
	}
	got := map[string]string{}
	for source := range tests {
		u, _, err := parse("UpdateExpression", source, bind(), updateRule)
		if err == nil {
			_, err = u.apply(sample())
		}
		if err == nil {
			t.Errorf("%s is accepted", source)
			continue
		}
		got[source] = err.message
	}
	if diff := cmp.Diff(tests, got); diff != "" {
		t.Error(diff)
	}
}

func TestAProjectionKeepsTheNamedPathsOnly(t *testing.T) {
	tests := map[string]item{
		"n":                      {"n": mustNumber("5")},
		"n, absent":              {"n": mustNumber("5")},
		"m.box":                  {"m": object{"box": object{"z": mustNumber("3")}}},
		"m.absent, n.x, s[0]":    {},
		"l[2].deep, l[0]":        {"l": list{mustNumber("0"), object{"deep": mustNumber("7")}}},
		"l[1], l[2].absent, m.x": {"l": list{text("one")}, "m": object{"x": text("y")}},
	}
	for source, want := range tests {
		paths, _, err := parse("ProjectionExpression", source, bind(), projectionRule)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := compareValues(want, newProjection(paths).apply(sample())); diff != "" {
			t.Errorf("%s: %s", source, diff)
		}
	}
}

func TestKeysSortByTypeAndNoneIsAPrefixOfAnother(t *testing.T) {
	ascending := []value{text("\x00"), text("\x00\x00"), text("\x00\x01"), text("\x01"), text("a"), text("a\x00"), text("a\x00b"), text("ab"), text("b"), text("é")}
	for i, a := range ascending {
		for j, b := range ascending {
			left, right := string(appendKeyValue(nil, a)), string(appendKeyValue(nil, b))
			if got := strings.Compare(left, right); got != sign(i-j) {
				t.Errorf("%q against %q: %d", a, b, got)
			}
			if i != j && strings.HasPrefix(left, right) {
				t.Errorf("the key of %q starts with that of %q", a, b)
			}
		}
	}
}

// FuzzExpression looks for input that makes the parser or the evaluation panic,
// and for updates that change their input.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"n = :5 AND (s <> :y OR NOT attribute_exists(m.x))", "l[2].deep BETWEEN :0 AND :10", "size(s) IN (:5, :7)",
		"SET n = if_not_exists(n, :0) + :1, l[0] = :y REMOVE m.x ADD ns :nums DELETE ss :set",
		"contains(l, :0) and begins_with(s, :gr)", "#n = :5", "((n))", "a[99999999999999999999]", "n = :5)", "#", ":", "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if c, _, err := parse("ConditionExpression", source, bind(), conditionRule); err == nil {
			c.holds(sample())
			c.holds(nil)
		}
		if paths, _, err := parse("ProjectionExpression", source, bind(), projectionRule); err == nil {
			newProjection(paths).apply(sample())
		}
		u, _, err := parse("UpdateExpression", source, bind(), updateRule)
		if err != nil {
			return
		}
		before := sample()
		_, _ = u.apply(before)
		if !equal(before, sample()) {
			t.Fatalf("%q changed its input", source)
		}
	})
}
