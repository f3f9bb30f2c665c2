package dynamodb

import "slices"

// search is a decoded Query or Scan.
type search struct {
	operation     string // its name, for messages
	table         string
	index         string
	indexGiven    bool
	expressions   expressions
	choice        string // Select
	start         item   // ExclusiveStartKey
	limit         int    // 0 means none
	limitGiven    bool
	backward      bool
	consistent    bool
	segment       int
	segments      int
	segmentGiven  bool
	segmentsGiven bool
	capacity      string
}

func (q *search) read(r *reader) {
	r.object(func(name string) {
		if r.absent() {
			return
		}
		if !q.member(r, name) {
			r.unknown(q.operation, name)
		}
	})
	r.end()
}

func (q *search) member(r *reader, name string) bool {
	switch name {
	case "TableName":
		q.table = r.text()
	case "IndexName":
		q.index, q.indexGiven = r.text(), true
	case "Select":
		q.choice = r.text()
	case "Limit":
		q.limit, q.limitGiven = r.integer(), true
	case "ConsistentRead":
		q.consistent = r.boolean()
	case "ExclusiveStartKey":
		q.start = r.readItem()
	case "ReturnConsumedCapacity":
		q.capacity = r.text()
	case "ProjectionExpression", "FilterExpression", "ExpressionAttributeNames", "ExpressionAttributeValues":
		return q.expressions.read(r, name)
	default:
		if q.operation == "Query" {
			return q.queryMember(r, name)
		}
		return q.scanMember(r, name)
	}
	return true
}

func (q *search) queryMember(r *reader, name string) bool {
	switch name {
	case "KeyConditionExpression":
		return q.expressions.read(r, name)
	case "ScanIndexForward":
		q.backward = !r.boolean()
		return true
	}
	return false
}

func (q *search) scanMember(r *reader, name string) bool {
	switch name {
	case "Segment":
		q.segment, q.segmentGiven = r.integer(), true
	case "TotalSegments":
		q.segments, q.segmentsGiven = r.integer(), true
	default:
		return false
	}
	return true
}

const segmentsMax = 1_000_000

// check validates what needs no table.
func (q *search) check() *apiError {
	switch {
	case q.table == "":
		return invalid("Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case q.limitGiven && q.limit < 1:
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", q.limit)
	case q.segmentGiven != q.segmentsGiven:
		return invalid("Segment and TotalSegments are required together")
	case q.segmentsGiven && (q.segments < 1 || q.segments > segmentsMax):
		return invalid("1 validation error detected: Value '%d' at 'totalSegments' failed to satisfy constraint: Member must have value between 1 and %d", q.segments, segmentsMax)
	case q.segmentGiven && (q.segment < 0 || q.segment >= q.segments):
		return invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", q.segment, q.segments)
	case q.operation == "Query" && !q.expressions.keyCondition.given:
		return invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	if err := q.checkChoice(); err != nil {
		return err
	}
	if err := checkCapacityMode(q.capacity); err != nil {
		return err
	}
	return q.expressions.check()
}

func (q *search) checkChoice() *apiError {
	projected := q.expressions.projection.given
	switch q.choice {
	case "":
		return nil
	case "SPECIFIC_ATTRIBUTES":
		if !projected {
			return invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
		return nil
	case "COUNT":
		if projected {
			return invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")
		}
		return nil
	case "ALL_PROJECTED_ATTRIBUTES":
		if !q.indexGiven {
			return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
	case "ALL_ATTRIBUTES":
	default:
		return invalid("Select must be ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES, COUNT, or SPECIFIC_ATTRIBUTES")
	}
	if projected {
		return invalid("Cannot specify the ProjectionExpression when choosing to get %s", q.choice)
	}
	return nil
}

// target is what a search reads: a table or one of its indexes, its key range,
// its filter and its view.
type target struct {
	table     *table
	index     *index // nil for the table itself
	low, high string // of encoded keys; an empty high is no bound
	filter    condition
	view      *projection
}

// schema is the key that orders the search.
func (t *target) schema() keySchema {
	if t.index != nil {
		return t.index.schema
	}
	return t.table.schema
}

// bind parses the search against its table.
func (s *Server) bind(q *search) (*target, *apiError) {
	tab, err := s.table(q.table)
	if err != nil {
		return nil, err
	}
	t := &target{table: tab}
	if q.indexGiven {
		if t.index = tab.index(q.index); t.index == nil {
			return nil, invalid("The table does not have the specified index: %s", q.index)
		}
		if q.consistent {
			return nil, invalid("Consistent reads are not supported on global secondary indexes")
		}
		if q.choice == "ALL_ATTRIBUTES" && t.index.projected != nil {
			return nil, invalid(messageInvalid+"Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", q.index)
		}
	}
	if err := t.bindExpressions(q, s.reserved); err != nil {
		return nil, err
	}
	return t, t.checkStart(q.start)
}

func (t *target) bindExpressions(q *search, reserved map[string]bool) *apiError {
	bound := newBindings(&q.expressions, reserved)
	var err *apiError
	var viewed []path
	if t.view, viewed, err = bound.projection(q.expressions.projection); err != nil {
		return err
	}
	if err := t.checkProjected(viewed, "Global secondary index %s does not project %v"); err != nil {
		return err
	}
	if err := t.bindFilter(q, bound); err != nil {
		return err
	}
	if err := t.bindRange(q, bound); err != nil {
		return err
	}
	return bound.unused()
}

func (t *target) bindFilter(q *search, bound *bindings) *apiError {
	if !q.expressions.filter.given {
		return nil
	}
	filter, parser, err := parse("FilterExpression", q.expressions.filter.text, bound, conditionRule)
	if err != nil {
		return err
	}
	if err := checkKeyPaths(parser.paths, t.schema()); err != nil {
		return err
	}
	if name, ok := firstKeyPath(parser.paths, t.schema()); ok && q.operation == "Query" {
		return invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
	}
	t.filter = filter
	return t.checkProjected(parser.paths, "Secondary index %s does not project one or more filter attributes: %v")
}

// checkProjected refuses an attribute that the index does not hold.
func (t *target) checkProjected(paths []path, format string) *apiError {
	if t.index == nil || t.index.projected == nil {
		return nil
	}
	for _, p := range paths {
		if !slices.Contains(t.index.projected, p[0].name) {
			return invalid(messageInvalid+format, t.index.name, path{p[0]})
		}
	}
	return nil
}

// bindRange sets the bounds: of the key condition, of the segment, or none.
func (t *target) bindRange(q *search, bound *bindings) *apiError {
	if q.operation != "Query" {
		if q.segmentsGiven {
			t.low, t.high = segmentBounds(q.segment, q.segments)
		}
		return nil
	}
	parsed, parser, err := parse("KeyConditionExpression", q.expressions.keyCondition.text, bound, conditionRule)
	if err != nil {
		return err
	}
	k, err := keyCondition(parsed, parser.paths, t.schema())
	if err != nil {
		return err
	}
	t.low, t.high = k.low, k.high
	return nil
}

// segmentBounds cuts the range of partition hashes into equal parts.
func segmentBounds(segment, segments int) (low, high string) {
	low = hashBound(segment, segments)
	if segment+1 < segments {
		high = hashBound(segment+1, segments)
	}
	return low, high
}

func hashBound(part, parts int) string {
	step := ^uint64(0)/uint64(parts) + 1 // rounded up, so that the last part ends at the top
	if parts == 1 {
		step = 0
	}
	bound := uint64(part) * step
	b := make([]byte, 0, 8)
	for shift := 56; shift >= 0; shift -= 8 {
		b = append(b, byte(bound>>shift))
	}
	return string(b)
}

// checkStart validates ExclusiveStartKey: exactly the attributes of the table's
// and the index's key, and within the range that is searched.
func (t *target) checkStart(start item) *apiError {
	if start == nil {
		return nil
	}
	wanted := t.startAttributes()
	if len(start) != len(wanted) {
		return invalid(messageStartingKey)
	}
	for _, a := range wanted {
		v, ok := start[a.name]
		if !ok || v.wire() != a.wire || isEmptyScalar(v) {
			return invalid(messageStartingKey)
		}
	}
	key := t.startKey(start)
	if key < t.low || t.high != "" && key >= t.high {
		return invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	return nil
}

// startAttributes are the attributes of LastEvaluatedKey, without repetition.
func (t *target) startAttributes() []keyAttribute {
	out := t.schema().attributes()
	for _, a := range t.table.schema.attributes() {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// startKey encodes the position after which to go on.
func (t *target) startKey(start item) string {
	if t.index == nil {
		return t.table.schema.encode(start)
	}
	return t.index.schema.encode(start) + t.table.schema.encode(start)
}
