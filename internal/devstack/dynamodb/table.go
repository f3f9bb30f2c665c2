package dynamodb

import (
	"slices"
	"time"
)

// record is one stored row. It is replaced, never changed.
type record struct {
	key  string // encoded primary key
	item item
	size int // billed bytes
}

func newRecord(key string, it item) *record {
	return &record{key: key, item: it, size: itemSize(it)}
}

// bytes of a record that may be absent.
func (r *record) bytes() int {
	if r == nil {
		return 0
	}
	return r.size
}

// entry is a row as an index sees it.
type entry struct {
	record *record
	size   int // of the projected attributes
}

// index is a sparse global secondary index: it holds the rows that have all its
// key attributes, sorted by its key and then by the primary key, so that equal
// index keys page correctly.
type index struct {
	name       string
	schema     keySchema
	projection string   // ALL, KEYS_ONLY or INCLUDE
	included   []string // for INCLUDE
	projected  []string // nil for ALL: every attribute
	entries    *ordered[entry]
	bytes      int
}

func (x *index) encode(r *record) string { return x.schema.encode(r.item) + r.key }

func (x *index) sizeOf(r *record) int {
	if x.projected == nil {
		return r.size
	}
	total := 0
	for _, name := range x.projected {
		total += attributeSize(r.item, name)
	}
	return total
}

// project is the row as the index returns it.
func (x *index) project(it item) item {
	if x.projected == nil {
		return it
	}
	out := make(item, len(x.projected))
	for _, name := range x.projected {
		if v, ok := it[name]; ok {
			out[name] = v
		}
	}
	return out
}

// sameProjection tells that a change of the row does not touch the index: nothing
// is then written to it, and nothing billed.
func (x *index) sameProjection(before, after item) bool {
	if x.projected == nil {
		return equal(before, after)
	}
	for _, name := range x.projected {
		old, had := before[name]
		now, has := after[name]
		if had != has || had && !equal(old, now) {
			return false
		}
	}
	return true
}

// replace brings the index from before to after, either of which may be nil, and
// returns the write units.
func (x *index) replace(before, after *record) float64 {
	was := before != nil && x.schema.present(before.item)
	is := after != nil && x.schema.present(after.item)
	switch {
	case was && is && x.sameProjection(before.item, after.item):
		x.insert(after) // the entry must hold the newest record
		return 0
	case was && is && x.encode(before) == x.encode(after):
		return writeUnits(max(x.remove(before), x.insert(after)))
	case was && is:
		return writeUnits(x.remove(before)) + writeUnits(x.insert(after))
	case was:
		return writeUnits(x.remove(before))
	case is:
		return writeUnits(x.insert(after))
	}
	return 0
}

func (x *index) insert(r *record) int {
	key, size := x.encode(r), x.sizeOf(r)
	if old, ok := x.entries.get(key); ok {
		x.bytes -= old.size
	}
	x.entries.put(key, entry{r, size})
	x.bytes += size
	return size
}

func (x *index) remove(r *record) int {
	size := x.sizeOf(r)
	x.entries.delete(x.encode(r))
	x.bytes -= size
	return size
}

// checkItem refuses a row whose index key attributes are of the wrong type or
// empty: the service stores no such row, projected or not.
func (x *index) checkItem(it item) *apiError {
	for _, a := range x.schema.attributes() {
		v, ok := it[a.name]
		if !ok {
			continue
		}
		if v.wire() != a.wire {
			return invalid(messageInvalid+"Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", a.name, a.wire, v.wire(), x.name)
		}
		if isEmptyScalar(v) {
			return invalid(messageNotValid+"A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", scalarName(v), x.name, a.name)
		}
	}
	return x.checkLength(it)
}

func (x *index) checkLength(it item) *apiError {
	if v, ok := it[x.schema.partition.name]; ok && v.size() > partitionBytesMax {
		return invalid(messageInvalid+"Size of hashkey has exceeded the maximum size limit of %d bytes", partitionBytesMax)
	}
	if v, ok := it[x.schema.sort.name]; ok && v.size() > sortBytesMax {
		return invalid(messageInvalid+"Aggregated size of all range keys has exceeded the size limit of %d bytes", sortBytesMax)
	}
	return nil
}

// table is one table with its indexes and, if enabled, its stream.
type table struct {
	name    string
	arn     string
	id      string
	created time.Time
	schema  keySchema
	types   []keyAttribute // as declared
	rows    *ordered[*record]
	indexes []*index
	stream  *stream // nil if not enabled
	bytes   int
	ttl     string // the attribute; empty if disabled
}

func (t *table) index(name string) *index {
	i := slices.IndexFunc(t.indexes, func(x *index) bool { return x.name == name })
	if i < 0 {
		return nil
	}
	return t.indexes[i]
}

// find returns the row under an encoded key, nil if there is none.
func (t *table) find(key string) *record {
	r, _ := t.rows.get(key)
	return r
}

// checkIndexes refuses a row that one of the indexes cannot hold.
func (t *table) checkIndexes(it item) *apiError {
	for _, x := range t.indexes {
		if err := x.checkItem(it); err != nil {
			return err
		}
	}
	return nil
}

// replace brings table and indexes from before to after, either of which may be
// nil, and returns the cost. It does not touch the stream.
func (t *table) replace(before, after *record) cost {
	c := cost{table: writeUnits(max(before.bytes(), after.bytes()))}
	t.bytes += after.bytes() - before.bytes()
	switch {
	case after != nil:
		t.rows.put(after.key, after)
	case before != nil:
		t.rows.delete(before.key)
	}
	for _, x := range t.indexes {
		c.addIndex(x.name, x.replace(before, after))
	}
	return c
}
