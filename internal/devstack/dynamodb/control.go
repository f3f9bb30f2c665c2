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
