package dynamodb

import (
	"fmt"
	"slices"
)

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
