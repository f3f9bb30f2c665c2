package dynamodb

import (
	"fmt"
	"sort"
	"time"
)

// Life of stream data, from the DynamoDB Streams documentation.
const (
	streamRetention  = 24 * time.Hour
	iteratorLife     = 15 * time.Minute
	recordsMax       = 1000 // in one GetRecords answer
	recordsBytesMax  = 1024 * 1024
	sequenceDigits   = 21
	expiryPrincipal  = "dynamodb.amazonaws.com"
	eventInsert      = "INSERT"
	eventModify      = "MODIFY"
	eventRemove      = "REMOVE"
	viewKeysOnly     = "KEYS_ONLY"
	viewNewImage     = "NEW_IMAGE"
	viewOldImage     = "OLD_IMAGE"
	viewNewAndOld    = "NEW_AND_OLD_IMAGES"
	streamTimeLayout = "2006-01-02T15:04:05.000"
)

// stream is a table's change log: one shard, in commit order. It outlives its
// table, closed.
type stream struct {
	arn     string
	label   string
	shard   string
	table   string
	view    string
	schema  keySchema
	created time.Time
	start   uint64 // first sequence number the shard can hold
	trimmed uint64 // last sequence number dropped for age, 0 if none
	last    uint64 // last sequence number written
	closed  bool
	records []change // ascending by sequence
}

// change is one record. The images are stored whole; the view is applied when
// they are read.
type change struct {
	sequence uint64
	at       time.Time
	before   item // nil for an insert
	after    item // nil for a removal
	expired  bool // by time to live, not by a caller
}

func (c change) event() string {
	switch {
	case c.before == nil:
		return eventInsert
	case c.after == nil:
		return eventRemove
	}
	return eventModify
}

// append adds a record and drops those beyond retention.
func (s *stream) append(c change) {
	s.records = append(s.records, c)
	s.last = c.sequence
	for len(s.records) > 0 && c.at.Sub(s.records[0].at) > streamRetention {
		s.trimmed = s.records[0].sequence
		s.records = s.records[1:]
	}
}

// from returns the records at or after a sequence number, at most limit and about
// recordsBytesMax.
func (s *stream) from(sequence uint64, limit int) []change {
	first := sort.Search(len(s.records), func(i int) bool { return s.records[i].sequence >= sequence })
	bytes := 0
	end := first
	for end < len(s.records) && end-first < limit && bytes < recordsBytesMax {
		bytes += s.size(s.records[end])
		end++
	}
	return s.records[first:end]
}

// images returns what the stream's view shows of a change.
func (s *stream) images(c change) (before, after item) {
	if s.view == viewOldImage || s.view == viewNewAndOld {
		before = c.before
	}
	if s.view == viewNewImage || s.view == viewNewAndOld {
		after = c.after
	}
	return before, after
}

func (s *stream) keys(c change) item {
	if c.after != nil {
		return s.schema.pick(c.after)
	}
	return s.schema.pick(c.before)
}

func (s *stream) size(c change) int {
	before, after := s.images(c)
	return itemSize(s.keys(c)) + itemSize(before) + itemSize(after)
}

func formatSequence(n uint64) string { return fmt.Sprintf("%0*d", sequenceDigits, n) }

// write encodes one record as GetRecords returns it.
func (s *stream) write(w *writer, c change, region string) {
	before, after := s.images(c)
	w.open('{')
	w.textMember("eventID", fmt.Sprintf("%s-%d", s.shard[len(s.shard)-8:], c.sequence))
	w.textMember("eventName", c.event())
	w.textMember("eventVersion", "1.1")
	w.textMember("eventSource", "aws:dynamodb")
	w.textMember("awsRegion", region)
	w.name("dynamodb")
	w.open('{')
	w.integerMember("ApproximateCreationDateTime", int(c.at.Unix()))
	w.name("Keys")
	w.item(s.keys(c))
	if after != nil {
		w.name("NewImage")
		w.item(after)
	}
	if before != nil {
		w.name("OldImage")
		w.item(before)
	}
	w.textMember("SequenceNumber", formatSequence(c.sequence))
	w.integerMember("SizeBytes", s.size(c))
	w.textMember("StreamViewType", s.view)
	w.close('}')
	if c.expired {
		w.name("userIdentity")
		w.open('{')
		w.textMember("PrincipalId", expiryPrincipal)
		w.textMember("Type", "Service")
		w.close('}')
	}
	w.close('}')
}
