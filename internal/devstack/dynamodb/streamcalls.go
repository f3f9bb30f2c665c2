package dynamodb

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// openStream gives a new table its stream.
func (s *Server) openStream(t *table, view string) {
	label := t.created.UTC().Format(streamTimeLayout)
	arn := t.arn + "/stream/" + label
	// Two tables of one name within a millisecond would share an ARN.
	for n := 1; s.streams[arn] != nil; n++ {
		label = fmt.Sprintf("%s-%d", t.created.UTC().Format(streamTimeLayout), n)
		arn = t.arn + "/stream/" + label
	}
	t.stream = &stream{
		arn:     arn,
		label:   label,
		shard:   fmt.Sprintf("shardId-%020d-%08x", t.created.UnixMilli(), s.created),
		table:   t.name,
		view:    view,
		schema:  t.schema,
		created: t.created,
		start:   s.sequence + 1,
	}
	s.streams[arn] = t.stream
}

// describe writes the stream's members of a TableDescription.
func (s *stream) describe(w *writer) {
	w.name("StreamSpecification")
	w.open('{')
	w.name("StreamEnabled")
	w.boolean(true)
	w.textMember("StreamViewType", s.view)
	w.close('}')
	w.textMember("LatestStreamLabel", s.label)
	w.textMember("LatestStreamArn", s.arn)
}

const streamsPageMax = 100

func (s *Server) listStreams(r *reader, w *writer) *apiError {
	table, start, limit := "", "", streamsPageMax
	r.object(func(name string) {
		switch name {
		case "TableName":
			table = r.text()
		case "ExclusiveStartStreamArn":
			start = r.text()
		case "Limit":
			limit = r.integer()
		default:
			r.unknown("ListStreams", name)
		}
	})
	r.end()
	switch {
	case r.err != nil:
		return r.err
	case limit < 1 || limit > streamsPageMax:
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d", limit, streamsPageMax)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	arns := slices.DeleteFunc(sortedKeys(s.streams), func(arn string) bool {
		return arn <= start || table != "" && s.streams[arn].table != table
	})
	w.open('{')
	w.name("Streams")
	writeAll(w, arns[:min(limit, len(arns))], func(arn string) {
		w.open('{')
		w.textMember("StreamArn", arn)
		w.textMember("TableName", s.streams[arn].table)
		w.textMember("StreamLabel", s.streams[arn].label)
		w.close('}')
	})
	if len(arns) > limit {
		w.textMember("LastEvaluatedStreamArn", arns[limit-1])
	}
	w.close('}')
	return nil
}

func (s *Server) describeStream(r *reader, w *writer) *apiError {
	arn, after, limit := "", "", streamsPageMax
	r.object(func(name string) {
		switch name {
		case "StreamArn":
			arn = r.text()
		case "ExclusiveStartShardId":
			after = r.text()
		case "Limit":
			limit = r.integer()
		default:
			r.unknown("DescribeStream", name)
		}
	})
	r.end()
	switch {
	case r.err != nil:
		return r.err
	case limit < 1 || limit > streamsPageMax:
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d", limit, streamsPageMax)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.stream(arn)
	if err != nil {
		return err
	}
	found.writeDescription(w, after < found.shard)
	return nil
}

func (s *Server) stream(arn string) (*stream, *apiError) {
	found := s.streams[arn]
	if found == nil {
		return nil, failure(kindNotFound, "Requested resource not found: Stream: %s not found", arn)
	}
	return found, nil
}

// writeDescription encodes the stream with its one shard, or without it if a page
// of shards begins after it.
func (s *stream) writeDescription(w *writer, withShard bool) {
	w.open('{')
	w.name("StreamDescription")
	w.open('{')
	w.textMember("StreamArn", s.arn)
	w.textMember("StreamLabel", s.label)
	w.textMember("StreamStatus", s.status())
	w.textMember("StreamViewType", s.view)
	w.name("CreationRequestDateTime")
	w.time(s.created)
	w.textMember("TableName", s.table)
	w.name("KeySchema")
	w.keySchema(s.schema)
	w.name("Shards")
	w.open('[')
	if withShard {
		w.open('{')
		w.textMember("ShardId", s.shard)
		w.name("SequenceNumberRange")
		w.open('{')
		w.textMember("StartingSequenceNumber", formatSequence(s.start))
		if s.closed {
			w.textMember("EndingSequenceNumber", formatSequence(max(s.last, s.start)))
		}
		w.close('}')
		w.close('}')
	}
	w.close(']')
	w.close('}')
	w.close('}')
}

func (s *stream) status() string {
	if s.closed {
		return "DISABLED"
	}
	return "ENABLED"
}

// iterator is a position in a shard: the next sequence number to read. It is all
// in its text, as the service's is; nothing is kept for it.
type iterator struct {
	stream string // ARN
	next   uint64
	issued time.Time
}

func (i iterator) String() string {
	inner := fmt.Sprintf("%d|%d", i.next, i.issued.UnixMilli())
	return i.stream + "|1|" + base64.StdEncoding.EncodeToString([]byte(inner))
}

func parseIterator(text string) (iterator, *apiError) {
	refused := invalid("Invalid ShardIterator")
	parts := strings.Split(text, "|")
	if len(parts) != 3 || parts[1] != "1" {
		return iterator{}, refused
	}
	inner, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return iterator{}, refused
	}
	next, issued, _ := strings.Cut(string(inner), "|")
	sequence, err := strconv.ParseUint(next, 10, 64)
	if err != nil {
		return iterator{}, refused
	}
	millis, err := strconv.ParseInt(issued, 10, 64)
	if err != nil {
		return iterator{}, refused
	}
	return iterator{parts[0], sequence, time.UnixMilli(millis)}, nil
}

// iteratorRequest is a decoded GetShardIterator.
type iteratorRequest struct{ arn, shard, kind, sequence string }

func (q *iteratorRequest) read(r *reader) {
	r.object(func(name string) {
		switch name {
		case "StreamArn":
			q.arn = r.text()
		case "ShardId":
			q.shard = r.text()
		case "ShardIteratorType":
			q.kind = r.text()
		case "SequenceNumber":
			q.sequence = r.text()
		default:
			r.unknown("GetShardIterator", name)
		}
	})
	r.end()
}

func (s *Server) getShardIterator(r *reader, w *writer) *apiError {
	q := &iteratorRequest{}
	q.read(r)
	if r.err != nil {
		return r.err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.stream(q.arn)
	if err != nil {
		return err
	}
	if q.shard != found.shard {
		return failure(kindNotFound, "Requested resource not found: Shard: %s not found", q.shard)
	}
	next, err := found.position(q, s.sequence)
	if err != nil {
		return err
	}
	w.open('{')
	w.textMember("ShardIterator", iterator{q.arn, next, s.now()}.String())
	w.close('}')
	return nil
}

// position turns an iterator type into the next sequence number to read; latest
// is the last one given out in the whole store.
func (s *stream) position(q *iteratorRequest, latest uint64) (uint64, *apiError) {
	switch q.kind {
	case "TRIM_HORIZON", "LATEST":
		if q.sequence != "" {
			return 0, invalid(messageInvalid + "SequenceNumber should not be passed for this iterator type")
		}
		if q.kind == "LATEST" {
			return latest + 1, nil
		}
		return max(s.start, s.trimmed+1), nil
	case "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER":
	default:
		return 0, invalid("1 validation error detected: Value '%s' at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]", q.kind)
	}
	sequence, err := strconv.ParseUint(q.sequence, 10, 64)
	if err != nil || len(q.sequence) != sequenceDigits || sequence < s.start {
		return 0, invalid("Invalid SequenceNumber for the shard")
	}
	if sequence <= s.trimmed {
		return 0, failure(kindTrimmed, "The operation attempted to read past the oldest stream record in a shard")
	}
	if q.kind == "AFTER_SEQUENCE_NUMBER" {
		sequence++
	}
	return sequence, nil
}

func (s *Server) getRecords(r *reader, w *writer) *apiError {
	text, limit := "", recordsMax
	r.object(func(name string) {
		switch name {
		case "ShardIterator":
			text = r.text()
		case "Limit":
			limit = r.integer()
		default:
			r.unknown("GetRecords", name)
		}
	})
	r.end()
	switch {
	case r.err != nil:
		return r.err
	case limit < 1 || limit > recordsMax:
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d", limit, recordsMax)
	}
	at, err := parseIterator(text)
	if err != nil {
		return err
	}
	if s.now().Sub(at.issued) > iteratorLife {
		return failure(kindExpired, "The provided iterator has expired: it is more than 15 minutes old")
	}
	return s.writeRecords(w, at, limit)
}

func (s *Server) writeRecords(w *writer, at iterator, limit int) *apiError {
	s.mu.RLock()
	found, err := s.stream(at.stream)
	if err != nil {
		s.mu.RUnlock()
		return err
	}
	trimmed := at.next <= found.trimmed
	records := found.from(at.next, limit) // never changed once written
	next, more := at.next, true
	if len(records) > 0 {
		next = records[len(records)-1].sequence + 1
	}
	if found.closed {
		more = next <= found.last
	}
	s.mu.RUnlock()
	if trimmed {
		return failure(kindTrimmed, "The operation attempted to read past the oldest stream record in a shard")
	}
	w.open('{')
	w.name("Records")
	writeAll(w, records, func(c change) { found.write(w, c, s.region) })
	if more {
		w.textMember("NextShardIterator", iterator{at.stream, next, s.now()}.String())
	}
	w.close('}')
	return nil
}
