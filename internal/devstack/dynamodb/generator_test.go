package dynamodb_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// call is one generated call.
type call struct {
	operation string
	body      doc
	streams   bool
	drain     bool   // follow the pages and compare the whole
	sortKey   string // of a drained query
	nested    bool   // an update names a path inside an attribute
	opaque    bool   // compare the outcome only
}

// generator makes calls over few keys and attributes, so that they meet each
// other. Most are sensible; some are spoilt on purpose.
type generator struct {
	*rand.Rand
	table  string
	tokens []doc // transactions that were sent with a token, to be repeated
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
}

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// chance is true in the given percentage of cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) next() *call {
	switch n := g.IntN(100); {
	case n < 20:
		return g.write("PutItem", g.put())
	case n < 45:
		return g.update()
	case n < 52:
		return g.write("DeleteItem", g.delete())
	case n < 57:
		return g.get()
	case n < 75:
		return g.transaction()
	case n < 85:
		return g.query()
	case n < 90:
		return g.scan()
	case n < 95:
		return g.batchWrite()
	}
	return g.batchGet()
}

func s(v string) doc { return doc{"S": v} }
func n(v string) doc { return doc{"N": v} }

func (g *generator) key() doc {
	k := doc{"pk": s(pick(g, "a", "b")), "sk": n(pick(g, "-1", "0", "2", "10"))}
	if g.chance(2) {
		switch g.IntN(4) {
		case 0:
			delete(k, "sk")
		case 1:
			k["sk"] = s("x")
		case 2:
			k["pk"] = s("")
		case 3:
			k["extra"] = n("1")
		}
	}
	return k
}

func (g *generator) number() string {
	return pick(g, "0", "1", "2", "-1", "5", "10", "9", "0.5", "-2.25", "100", "12345678901234567890123456789012345678", "1e-3", "7e20")
}

func (g *generator) value(depth int) doc {
	switch c := g.IntN(12); {
	case c < 4:
		return n(g.number())
	case c < 7:
		return s(pick(g, "", "a", "ab", "b", "hello", "é"))
	case c == 7:
		return pick(g, doc{"BOOL": true}, doc{"BOOL": false}, doc{"NULL": true}, doc{"B": "AAEC"})
	case c == 8:
		return pick(g, doc{"SS": []any{"a"}}, doc{"SS": []any{"a", "b"}}, doc{"NS": []any{"1", "2"}}, doc{"BS": []any{"AA=="}})
	case depth <= 0:
		return n(g.number())
	case c < 11:
		elements := []any{}
		for range g.IntN(4) {
			elements = append(elements, g.value(depth-1))
		}
		return doc{"L": elements}
	}
	members := doc{}
	for range g.IntN(3) {
		members[pick(g, "x", "y", "z")] = g.value(depth - 1)
	}
	return doc{"M": members}
}

func (g *generator) item() doc {
	it := g.key()
	if g.chance(50) {
		it["g"] = s(pick(g, "g1", "g2"))
	}
	if g.chance(60) {
		it["n"] = n(pick(g, "1", "2", "3", "10"))
	}
	for range g.IntN(5) {
		it[g.name()] = g.value(2)
	}
	if g.chance(10) {
		it["big"] = s(strings.Repeat("x", 500*g.IntN(20)))
	}
	if g.chance(2) {
		it[pick(g, "g", "n")] = pick(g, s(""), n("1"), s("x"), doc{"BOOL": true})
	}
	return it
}

func (g *generator) name() string { return pick(g, "v", "w", "t", "l", "m", "e", "q") }

// expression is text with the placeholders it uses.
type expression struct {
	tokens []string
	names  doc
	values doc
	nested bool
}

func (e *expression) add(tokens ...string) { e.tokens = append(e.tokens, tokens...) }

func (g *generator) path(e *expression) {
	if g.chance(6) {
		e.add(pick(g, "pk", "sk", "g", "n"))
		return
	}
	name := g.name()
	if g.chance(15) {
		placeholder := "#" + name
		e.names[placeholder] = pick(g, name, "status", "a.b")
		name = placeholder
	}
	e.add(name)
	for g.chance(25) {
		e.nested = true
		e.add(pick(g, ".x", ".y", "[0]", "[1]", "[3]"))
	}
}

func (g *generator) literal(e *expression, v doc) {
	name := fmt.Sprintf(":v%d", len(e.values))
	e.values[name] = v
	e.add(name)
}

func (g *generator) operand(e *expression) {
	switch c := g.IntN(10); {
	case c < 5:
		g.path(e)
	case c < 9:
		g.literal(e, g.value(1))
	default:
		e.add("size(")
		g.path(e)
		e.add(")")
	}
}

func (g *generator) condition(e *expression, depth int) {
	if depth > 0 && g.chance(40) {
		switch g.IntN(4) {
		case 0:
			e.add("NOT")
			g.condition(e, depth-1)
		case 1:
			e.add("(")
			g.condition(e, depth-1)
			e.add(pick(g, "AND", "OR"))
			g.condition(e, depth-1)
			e.add(")")
		default:
			g.condition(e, depth-1)
			e.add(pick(g, "AND", "OR"))
			g.condition(e, depth-1)
		}
		return
	}
	g.simpleCondition(e)
}

func (g *generator) simpleCondition(e *expression) {
	switch c := g.IntN(12); {
	case c < 4:
		g.operand(e)
		e.add(pick(g, "=", "<>", "<", "<=", ">", ">="))
		g.operand(e)
	case c < 6:
		e.add(pick(g, "attribute_exists", "attribute_not_exists"), "(")
		g.path(e)
		e.add(")")
	case c == 6:
		e.add("attribute_type", "(")
		g.path(e)
		e.add(",")
		g.literal(e, s(pick(g, "S", "N", "L", "M", "SS", "NULL", "BOOL")))
		e.add(")")
	case c < 9:
		e.add(pick(g, "begins_with", "contains"), "(")
		g.path(e)
		e.add(",")
		g.operand(e)
		e.add(")")
	case c == 9:
		g.operand(e)
		e.add("BETWEEN")
		g.operand(e)
		e.add("AND")
		g.operand(e)
	default:
		g.operand(e)
		e.add("IN", "(")
		g.operand(e)
		for range g.IntN(3) {
			e.add(",")
			g.operand(e)
		}
		e.add(")")
	}
}

// text joins the tokens, once in a while with one lost, doubled or exchanged.
func (g *generator) text(e *expression) string {
	if g.chance(7) && len(e.tokens) > 0 {
		at := g.IntN(len(e.tokens))
		switch g.IntN(3) {
		case 0:
			e.tokens[at] = ""
		case 1:
			e.tokens[at] += " " + e.tokens[at]
		case 2:
			e.tokens[at] = pick(g, "(", ")", ",", "=", "AND", "OR", "v", "status", ":v0", "#x", "IN", "+", "[0]", ".x", "5")
		}
	}
	return strings.Join(e.tokens, " ")
}

// bind puts an expression and its values into a request.
func (g *generator) bind(body doc, member string, e *expression) {
	body[member] = strings.NewReplacer(" .", ".", " [", "[").Replace(g.text(e))
	merge(body, "ExpressionAttributeNames", e.names)
	if g.chance(2) {
		e.values[":unused"] = n("1")
	}
	merge(body, "ExpressionAttributeValues", e.values)
}

// merge adds placeholders to those of another expression in the same request.
func merge(body doc, member string, more doc) {
	if len(more) == 0 {
		return
	}
	all, _ := body[member].(doc)
	if all == nil {
		all = doc{}
		body[member] = all
	}
	for name, v := range more {
		all[name] = v
	}
}

func newExpression() *expression { return &expression{names: doc{}, values: doc{}} }

// continued is an expression for a request that may have another one already; its
// values are numbered after those.
func continued(body doc) *expression {
	e := newExpression()
	if values, ok := body["ExpressionAttributeValues"].(doc); ok {
		e.values = values
	}
	return e
}

// guard adds a condition to half of the writes.
func (g *generator) guard(body doc) doc {
	if g.chance(50) {
		return body
	}
	e := continued(body)
	if g.chance(40) {
		e.add(pick(g, "attribute_exists ( pk )", "attribute_not_exists ( pk )"))
	} else {
		g.condition(e, 2)
	}
	g.bind(body, "ConditionExpression", e)
	if g.chance(50) {
		body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
	}
	return body
}

func (g *generator) put() doc { return g.guard(doc{"TableName": g.table, "Item": g.item()}) }

func (g *generator) delete() doc { return g.guard(doc{"TableName": g.table, "Key": g.key()}) }

func (g *generator) write(operation string, body doc) *call {
	if g.chance(30) {
		body["ReturnValues"] = pick(g, "NONE", "ALL_OLD")
	}
	if g.chance(30) {
		body["ReturnConsumedCapacity"] = pick(g, "TOTAL", "INDEXES")
	}
	return &call{operation: operation, body: body}
}

func (g *generator) updateValue(e *expression, depth int) {
	switch c := g.IntN(10); {
	case c < 4:
		g.literal(e, g.value(1))
	case c < 7 || depth <= 0:
		g.path(e)
	case c < 9:
		e.add("if_not_exists", "(")
		g.path(e)
		e.add(",")
		g.updateValue(e, depth-1)
		e.add(")")
	default:
		e.add("list_append", "(")
		g.updateValue(e, depth-1)
		e.add(",")
		g.updateValue(e, depth-1)
		e.add(")")
	}
}

func (g *generator) section(e *expression, name string) {
	e.add(name)
	for i := range 1 + g.IntN(2) {
		if i > 0 {
			e.add(",")
		}
		g.path(e)
		switch name {
		case "SET":
			e.add("=")
			g.updateValue(e, 1)
			if g.chance(35) {
				e.add(pick(g, "+", "-"))
				g.updateValue(e, 0)
			}
		case "ADD":
			g.literal(e, pick(g, n(g.number()), doc{"SS": []any{"b", "c"}}, doc{"NS": []any{"2", "3"}}, s("x")))
		case "DELETE":
			g.literal(e, pick(g, doc{"SS": []any{"a", "b"}}, doc{"NS": []any{"2"}}, n("1")))
		}
	}
}

func (g *generator) updateBody() (doc, bool) {
	body := doc{"TableName": g.table, "Key": g.key()}
	e := newExpression()
	for _, name := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		if g.chance(35) {
			g.section(e, name)
		}
	}
	if len(e.tokens) == 0 {
		e.add("SET", pick(g, "n", "g"), "=")
		g.literal(e, pick(g, n("1"), n("3"), s("g1"), s("g2"), s("")))
	}
	g.bind(body, "UpdateExpression", e)
	return g.guard(body), e.nested
}

func (g *generator) update() *call {
	body, nested := g.updateBody()
	c := g.write("UpdateItem", body)
	c.nested = nested
	if g.chance(50) {
		body["ReturnValues"] = pick(g, "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
	}
	return c
}

func (g *generator) get() *call {
	body := doc{"TableName": g.table, "Key": g.key(), "ConsistentRead": g.chance(50)}
	if g.chance(50) {
		e := newExpression()
		g.path(e)
		for range g.IntN(3) {
			e.add(",")
			g.path(e)
		}
		g.bind(body, "ProjectionExpression", e)
		delete(body, "ExpressionAttributeValues")
	}
	if g.chance(30) {
		body["ReturnConsumedCapacity"] = pick(g, "TOTAL", "INDEXES")
	}
	return &call{operation: "GetItem", body: body}
}

func (g *generator) transaction() *call {
	if len(g.tokens) > 0 && g.chance(10) {
		body := pick(g, g.tokens...)
		if g.chance(50) { // the same token for other actions
			body = doc{"ClientRequestToken": body["ClientRequestToken"], "TransactItems": g.actions()}
		}
		return &call{operation: "TransactWriteItems", body: body}
	}
	body := doc{"TransactItems": g.actions()}
	if g.chance(30) {
		body["ClientRequestToken"] = fmt.Sprintf("%s-%d", g.table[len(g.table)-20:], g.Uint32())
		g.tokens = append(g.tokens, body)
	}
	return &call{operation: "TransactWriteItems", body: body}
}

func (g *generator) actions() []any {
	var out []any
	for range 1 + g.IntN(3) {
		switch g.IntN(5) {
		case 0, 1:
			out = append(out, doc{"Put": g.put()})
		case 2:
			body, _ := g.updateBody()
			out = append(out, doc{"Update": body})
		case 3:
			out = append(out, doc{"Delete": g.delete()})
		case 4:
			body := g.delete()
			if body["ConditionExpression"] == nil {
				body["ConditionExpression"] = "attribute_exists(pk)"
			}
			out = append(out, doc{"ConditionCheck": body})
		}
	}
	return out
}

func (g *generator) filter(body doc) {
	if g.chance(50) {
		return
	}
	e := continued(body)
	g.condition(e, 1)
	g.bind(body, "FilterExpression", e)
}

func (g *generator) query() *call {
	body := doc{"TableName": g.table, "ScanIndexForward": g.chance(50)}
	hash, sort := "pk", "sk"
	if g.chance(60) {
		name := pick(g, "scores", "some", "every")
		body["IndexName"] = name
		hash = "g"
		if name == "scores" {
			sort = "n"
		}
	}
	e := newExpression()
	e.add(hash, "=")
	g.literal(e, s(pick(g, map[string][]string{"pk": {"a", "b"}, "g": {"g1", "g2"}}[hash]...)))
	if g.chance(60) {
		e.add("AND")
		g.sortTest(e, sort)
	}
	g.bind(body, "KeyConditionExpression", e)
	g.filter(body)
	if g.chance(70) {
		body["Limit"] = 1 + g.IntN(4)
	}
	if hash == "pk" {
		body["ReturnConsumedCapacity"] = pick(g, "TOTAL", "INDEXES")
	}
	return &call{operation: "Query", body: body, drain: true, sortKey: sort}
}

func (g *generator) sortTest(e *expression, sort string) {
	number := func() doc { return n(pick(g, "-1", "0", "1", "2", "2.5", "3", "10")) }
	if g.chance(30) {
		e.add(sort, "BETWEEN")
		g.literal(e, number())
		e.add("AND")
		g.literal(e, number())
		return
	}
	e.add(sort, pick(g, "=", "<", "<=", ">", ">="))
	g.literal(e, number())
}

func (g *generator) scan() *call {
	body := doc{"TableName": g.table}
	if g.chance(40) {
		body["IndexName"] = pick(g, "scores", "some", "every")
	}
	g.filter(body)
	if g.chance(60) {
		body["Limit"] = 1 + g.IntN(4)
	}
	return &call{operation: "Scan", body: body, drain: true}
}

func (g *generator) batchWrite() *call {
	var requests []any
	for range 1 + g.IntN(4) {
		if g.chance(70) {
			requests = append(requests, doc{"PutRequest": doc{"Item": g.item()}})
		} else {
			requests = append(requests, doc{"DeleteRequest": doc{"Key": g.key()}})
		}
	}
	return &call{operation: "BatchWriteItem", body: doc{"RequestItems": doc{g.table: requests}}}
}

func (g *generator) batchGet() *call {
	var keys []any
	for range 1 + g.IntN(4) {
		keys = append(keys, g.key())
	}
	return &call{operation: "BatchGetItem", body: doc{"RequestItems": doc{g.table: doc{"Keys": keys, "ConsistentRead": true}}}}
}
