package dynamodb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Quotas of table definitions.
const (
	indexesMax     = 20
	includedMax    = 100 // projected attributes over all indexes of a table
	tablesPageMax  = 100
	ttlNameMax     = 255
	projectionAll  = "ALL"
	projectionKeys = "KEYS_ONLY"
	projectionSome = "INCLUDE"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// keyElement is one entry of a KeySchema as sent.
type keyElement struct{ name, role string }

// indexRequest is one entry of GlobalSecondaryIndexes as sent.
type indexRequest struct {
	name       string
	keys       []keyElement
	projection string
	included   []string
}

// tableRequest is a decoded CreateTable.
type tableRequest struct {
	name          string
	types         []keyAttribute
	keys          []keyElement
	billing       string
	indexes       []indexRequest
	indexesGiven  bool
	streamEnabled bool
	view          string
}

func (q *tableRequest) read(r *reader) {
	r.object(func(name string) {
		if r.absent() {
			return
		}
		switch name {
		case "TableName":
			q.name = r.text()
		case "AttributeDefinitions":
			r.array(func() { q.types = append(q.types, readDefinition(r)) })
		case "KeySchema":
			q.keys = readKeySchema(r)
		case "BillingMode":
			q.billing = r.text()
		case "GlobalSecondaryIndexes":
			q.indexesGiven = true
			r.array(func() { q.indexes = append(q.indexes, readIndex(r)) })
		case "StreamSpecification":
			q.readStream(r)
		default:
			r.unknown("CreateTable", name)
		}
	})
	r.end()
}

func readDefinition(r *reader) keyAttribute {
	var a keyAttribute
	r.object(func(name string) {
		switch name {
		case "AttributeName":
			a.name = r.text()
		case "AttributeType":
			a.wire = r.text()
		default:
			r.unknown("AttributeDefinitions", name)
		}
	})
	return a
}

func readKeySchema(r *reader) []keyElement {
	var out []keyElement
	r.array(func() {
		var e keyElement
		r.object(func(name string) {
			switch name {
			case "AttributeName":
				e.name = r.text()
			case "KeyType":
				e.role = r.text()
			default:
				r.unknown("KeySchema", name)
			}
		})
		out = append(out, e)
	})
	return out
}

func readIndex(r *reader) indexRequest {
	var x indexRequest
	r.object(func(name string) {
		switch name {
		case "IndexName":
			x.name = r.text()
		case "KeySchema":
			x.keys = readKeySchema(r)
		case "Projection":
			x.readProjection(r)
		default:
			r.unknown("GlobalSecondaryIndexes", name)
		}
	})
	return x
}

func (x *indexRequest) readProjection(r *reader) {
	r.object(func(name string) {
		switch name {
		case "ProjectionType":
			x.projection = r.text()
		case "NonKeyAttributes":
			r.array(func() { x.included = append(x.included, r.text()) })
		default:
			r.unknown("Projection", name)
		}
	})
}

func (q *tableRequest) readStream(r *reader) {
	r.object(func(name string) {
		switch name {
		case "StreamEnabled":
			q.streamEnabled = r.boolean()
		case "StreamViewType":
			q.view = r.text()
		default:
			r.unknown("StreamSpecification", name)
		}
	})
}

func (q *tableRequest) check() *apiError {
	if err := checkName(q.name); err != nil {
		return err
	}
	switch {
	case q.billing != "PAY_PER_REQUEST":
		return unsupported("a billing mode other than PAY_PER_REQUEST")
	case len(q.types) == 0:
		return invalid("No Attribute Schema Defined")
	case q.indexesGiven && len(q.indexes) == 0:
		return invalid(messageInvalid + "List of GlobalSecondaryIndexes is empty")
	case len(q.indexes) > indexesMax:
		return invalid(messageInvalid+"GlobalSecondaryIndex count exceeds the per-table limit of %d", indexesMax)
	case q.streamEnabled && !slices.Contains([]string{viewKeysOnly, viewNewImage, viewOldImage, viewNewAndOld}, q.view):
		return invalid(messageInvalid+"StreamViewType %q is not one of KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES", q.view)
	case !q.streamEnabled && q.view != "":
		return invalid(messageInvalid + "StreamViewType was given but StreamEnabled is false")
	}
	return q.checkTypes()
}

func (q *tableRequest) checkTypes() *apiError {
	seen := map[string]bool{}
	for _, a := range q.types {
		switch {
		case a.wire != "S" && a.wire != "N" && a.wire != "B":
			return invalid("1 validation error detected: Value '%s' at 'attributeDefinitions.member.attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]", a.wire)
		case seen[a.name] || a.name == "":
			return invalid(messageInvalid+"Cannot redefine an attribute: %q", a.name)
		}
		seen[a.name] = true
	}
	for _, keys := range q.allKeys() {
		for _, e := range keys {
			if !seen[e.name] {
				return invalid(messageInvalid+"Some index key attributes are not defined in AttributeDefinitions. Key: %s", e.name)
			}
		}
	}
	used := map[string]bool{}
	for _, keys := range q.allKeys() {
		for _, e := range keys {
			used[e.name] = true
		}
	}
	if len(used) != len(seen) {
		return invalid(messageInvalid + "Some AttributeDefinitions are not used by any key")
	}
	return nil
}

func (q *tableRequest) allKeys() [][]keyElement {
	out := [][]keyElement{q.keys}
	for _, x := range q.indexes {
		out = append(out, x.keys)
	}
	return out
}

func (q *tableRequest) schema(keys []keyElement) (keySchema, *apiError) {
	switch {
	case len(keys) == 0 || len(keys) > 2 || keys[0].role != "HASH":
		return keySchema{}, invalid(messageInvalid + "KeySchema must be one HASH element and at most one RANGE element after it")
	case len(keys) == 2 && (keys[1].role != "RANGE" || keys[1].name == keys[0].name):
		return keySchema{}, invalid(messageInvalid + "the second KeySchema element must be a RANGE over another attribute")
	}
	out := keySchema{partition: q.typed(keys[0].name)}
	if len(keys) == 2 {
		out.sort = q.typed(keys[1].name)
	}
	return out, nil
}

func (q *tableRequest) typed(name string) keyAttribute {
	i := slices.IndexFunc(q.types, func(a keyAttribute) bool { return a.name == name })
	return q.types[i]
}

// newIndex builds one index; checkTypes has made sure that its keys are defined.
func (q *tableRequest) newIndex(request indexRequest, primary keySchema) (*index, *apiError) {
	if err := checkName(request.name); err != nil {
		return nil, err
	}
	schema, err := q.schema(request.keys)
	if err != nil {
		return nil, err
	}
	x := &index{name: request.name, schema: schema, projection: request.projection, included: request.included, entries: newOrdered[entry]()}
	if request.projection == projectionAll {
		if len(request.included) > 0 {
			return nil, invalid(messageInvalid + "NonKeyAttributes are for the projection type INCLUDE only")
		}
		return x, nil
	}
	for _, a := range slices.Concat(schema.attributes(), primary.attributes()) {
		if !slices.Contains(x.projected, a.name) {
			x.projected = append(x.projected, a.name)
		}
	}
	return x, x.include(request)
}

func (x *index) include(request indexRequest) *apiError {
	switch {
	case request.projection == projectionKeys && len(request.included) == 0:
		return nil
	case request.projection == projectionSome && len(request.included) > 0:
		for _, name := range request.included {
			if !slices.Contains(x.projected, name) {
				x.projected = append(x.projected, name)
			}
		}
		return nil
	}
	return invalid(messageInvalid+"the projection of index %s must be ALL, KEYS_ONLY, or INCLUDE with NonKeyAttributes", request.name)
}

func (s *Server) createTable(r *reader, w *writer) *apiError {
	q := &tableRequest{}
	q.read(r)
	if r.err != nil {
		return r.err
	}
	if err := q.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[q.name] != nil {
		return failure(kindInUse, "Table already exists: %s", q.name)
	}
	t, err := s.newTable(q)
	if err != nil {
		return err
	}
	s.tables[t.name] = t
	w.open('{')
	w.name("TableDescription")
	t.write(w, "ACTIVE")
	w.close('}')
	return nil
}

func (s *Server) newTable(q *tableRequest) (*table, *apiError) {
	schema, err := q.schema(q.keys)
	if err != nil {
		return nil, err
	}
	t := &table{name: q.name, arn: s.tableARN(q.name), created: s.now(), schema: schema, types: q.types, rows: newOrdered[*record]()}
	included := 0
	for _, request := range q.indexes {
		if t.index(request.name) != nil {
			return nil, invalid(messageInvalid+"Duplicate index name: %s", request.name)
		}
		x, err := q.newIndex(request, schema)
		if err != nil {
			return nil, err
		}
		t.indexes = append(t.indexes, x)
		included += len(request.included)
	}
	if included > includedMax {
		return nil, invalid(messageInvalid+"more than %d projected attributes in all", includedMax)
	}
	s.created++
	t.id = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.created)
	if q.streamEnabled {
		s.openStream(t, q.view)
	}
	return t, nil
}

func (s *Server) tableARN(name string) string {
	return "arn:aws:dynamodb:" + s.region + ":" + s.account + ":table/" + name
}

// write encodes a TableDescription. Counts are exact, not the service's
// six-hourly estimates.
func (t *table) write(w *writer, status string) {
	w.open('{')
	w.name("AttributeDefinitions")
	writeAll(w, t.types, func(a keyAttribute) {
		w.open('{')
		w.textMember("AttributeName", a.name)
		w.textMember("AttributeType", a.wire)
		w.close('}')
	})
	w.textMember("TableName", t.name)
	w.name("KeySchema")
	w.keySchema(t.schema)
	w.textMember("TableStatus", status)
	w.name("CreationDateTime")
	w.time(t.created)
	w.integerMember("TableSizeBytes", t.bytes)
	w.integerMember("ItemCount", t.rows.count)
	w.textMember("TableArn", t.arn)
	w.textMember("TableId", t.id)
	w.name("BillingModeSummary")
	w.open('{')
	w.textMember("BillingMode", "PAY_PER_REQUEST")
	w.close('}')
	if len(t.indexes) > 0 {
		w.name("GlobalSecondaryIndexes")
		writeAll(w, t.indexes, func(x *index) { x.write(w, t.arn) })
	}
	if t.stream != nil {
		t.stream.describe(w)
	}
	w.close('}')
}

func (x *index) write(w *writer, tableARN string) {
	w.open('{')
	w.textMember("IndexName", x.name)
	w.name("KeySchema")
	w.keySchema(x.schema)
	w.name("Projection")
	w.open('{')
	w.textMember("ProjectionType", x.projection)
	if len(x.included) > 0 {
		w.name("NonKeyAttributes")
		writeAll(w, x.included, w.text)
	}
	w.close('}')
	w.textMember("IndexStatus", "ACTIVE")
	w.integerMember("IndexSizeBytes", x.bytes)
	w.integerMember("ItemCount", x.entries.count)
	w.textMember("IndexArn", tableARN+"/index/"+x.name)
	w.close('}')
}

func (w *writer) keySchema(k keySchema) {
	roles := []string{"HASH", "RANGE"}
	w.open('[')
	for i, a := range k.attributes() {
		w.open('{')
		w.textMember("AttributeName", a.name)
		w.textMember("KeyType", roles[i])
		w.close('}')
	}
	w.close(']')
}

// time writes seconds since the epoch with milliseconds.
func (w *writer) time(at time.Time) {
	w.next()
	millis := at.UnixMilli()
	w.b = strconv.AppendInt(w.b, millis/1000, 10)
	w.b = fmt.Appendf(w.b, ".%03d", millis%1000)
}

// readTableName decodes a request whose only member is TableName.
func readTableName(operation string, r *reader) (string, *apiError) {
	out := ""
	r.object(func(name string) {
		if name != "TableName" {
			r.unknown(operation, name)
			return
		}
		out = r.text()
	})
	r.end()
	if r.err != nil {
		return "", r.err
	}
	return out, nil
}

func (s *Server) describeTable(r *reader, w *writer) *apiError {
	name, err := readTableName("DescribeTable", r)
	if err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	w.open('{')
	w.name("Table")
	t.write(w, "ACTIVE")
	w.close('}')
	return nil
}

// deleteTable drops a table at once. Its stream stays readable, closed.
func (s *Server) deleteTable(r *reader, w *writer) *apiError {
	name, err := readTableName("DeleteTable", r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	delete(s.tables, name)
	if t.stream != nil {
		t.stream.closed = true
	}
	w.open('{')
	w.name("TableDescription")
	t.write(w, "DELETING")
	w.close('}')
	return nil
}

func (s *Server) listTables(r *reader, w *writer) *apiError {
	start, limit := "", tablesPageMax
	r.object(func(name string) {
		switch name {
		case "ExclusiveStartTableName":
			start = r.text()
		case "Limit":
			limit = r.integer()
		default:
			r.unknown("ListTables", name)
		}
	})
	r.end()
	switch {
	case r.err != nil:
		return r.err
	case limit < 1 || limit > tablesPageMax:
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d", limit, tablesPageMax)
	}
	s.mu.RLock()
	names := sortedKeys(s.tables)
	s.mu.RUnlock()
	names = slices.DeleteFunc(names, func(name string) bool { return cmp.Compare(name, start) <= 0 })
	w.open('{')
	w.name("TableNames")
	writeAll(w, names[:min(limit, len(names))], w.text)
	if len(names) > limit {
		w.textMember("LastEvaluatedTableName", names[limit-1])
	}
	w.close('}')
	return nil
}
