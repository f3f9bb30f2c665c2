package dynamodb

import (
	"strings"
)

// keyAttribute names one attribute of a key and its scalar type (S, N or B).
type keyAttribute struct{ name, wire string }

// keySchema is a partition attribute and, where sort.name is not empty, a sort
// attribute.
type keySchema struct{ partition, sort keyAttribute }

func (k keySchema) hasSort() bool { return k.sort.name != "" }

// attributes lists one or two of them.
func (k keySchema) attributes() []keyAttribute {
	if k.hasSort() {
		return []keyAttribute{k.partition, k.sort}
	}
	return []keyAttribute{k.partition}
}

func (k keySchema) has(name string) bool {
	return name == k.partition.name || k.hasSort() && name == k.sort.name
}

// Longest keys in bytes, from the service's quotas.
const (
	partitionBytesMax = 2048
	sortBytesMax      = 1024
)

// check refuses an item that cannot be stored under the schema.
func (k keySchema) check(it item) *apiError {
	for _, a := range k.attributes() {
		v, ok := it[a.name]
		switch {
		case !ok:
			return invalid(messageInvalid+"Missing the key %s in the item", a.name)
		case v.wire() != a.wire:
			return invalid(messageInvalid+"Type mismatch for key %s expected: %s actual: %s", a.name, a.wire, v.wire())
		}
		if err := checkKeyValue(a, v); err != nil {
			return err
		}
	}
	return k.checkLength(it)
}

func checkKeyValue(a keyAttribute, v value) *apiError {
	if isEmptyScalar(v) {
		return invalid(messageNotValid+"The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", scalarName(v), a.name)
	}
	return nil
}

func (k keySchema) checkLength(it item) *apiError {
	if it[k.partition.name].size() > partitionBytesMax {
		return invalid(messageInvalid+"Size of hashkey has exceeded the maximum size limit of %d bytes", partitionBytesMax)
	}
	if k.hasSort() && it[k.sort.name].size() > sortBytesMax {
		return invalid(messageInvalid+"Aggregated size of all range keys has exceeded the size limit of %d bytes", sortBytesMax)
	}
	return nil
}

// checkKey is check for a Key member: exactly the key's attributes.
func (k keySchema) checkKey(key item) *apiError {
	if len(key) != len(k.attributes()) {
		return invalid(messageKeySchema)
	}
	for _, a := range k.attributes() {
		v, ok := key[a.name]
		if !ok || v.wire() != a.wire {
			return invalid(messageKeySchema)
		}
		if err := checkKeyValue(a, v); err != nil {
			return err
		}
	}
	return k.checkLength(key)
}

func isEmptyScalar(v value) bool { return v == text("") || v == binary("") }

func scalarName(v value) string {
	if v.wire() == "B" {
		return "binary"
	}
	return "string"
}

// pick is the key of an item, as an item.
func (k keySchema) pick(it item) item {
	out := make(item, 4)
	for _, a := range k.attributes() {
		out[a.name] = it[a.name]
	}
	return out
}

// present tells whether an item holds every attribute of the key: only then does
// it have an entry in the index.
func (k keySchema) present(it item) bool {
	for _, a := range k.attributes() {
		if _, ok := it[a.name]; !ok {
			return false
		}
	}
	return true
}

// encode writes bytes that sort as the service does: by a hash of the partition
// value, then the partition, then the sort value. No encoded key is a prefix of
// another of the same schema.
func (k keySchema) encode(it item) string {
	b := k.appendPartition(make([]byte, 0, 64), it[k.partition.name])
	if k.hasSort() {
		b = appendKeyValue(b, it[k.sort.name])
	}
	return string(b)
}

func (k keySchema) appendPartition(b []byte, v value) []byte {
	own := appendKeyValue(nil, v)
	hash := hashKey(own)
	for shift := 56; shift >= 0; shift -= 8 {
		b = append(b, byte(hash>>shift))
	}
	return append(b, own...)
}

// hashKey is FNV-1a with a final mix, so that its high bits split evenly: scan
// segments are ranges of it.
func hashKey(b []byte) uint64 {
	hash := uint64(14695981039346656037)
	for _, c := range b {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return hash ^ hash>>33
}

// appendKeyValue encodes a scalar so that byte order is value order.
func appendKeyValue(b []byte, v value) []byte {
	switch v := v.(type) {
	case number:
		return v.appendKey(b)
	case text:
		return append(appendEscaped(b, string(v)), 0, 1)
	case binary:
		return append(appendEscaped(b, string(v)), 0, 1)
	}
	panic("dynamodb: a key attribute is not a scalar; checkKey lets none pass")
}

// appendKeyPrefix encodes the start of a string or binary, for begins_with.
func appendKeyPrefix(b []byte, v value) []byte {
	encoded := appendKeyValue(b, v)
	return encoded[:len(encoded)-2]
}

// appendEscaped keeps 0x00 apart from the terminator 0x00 0x01.
func appendEscaped(b []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			return append(b, s...)
		}
		b = append(b, s[:i]...)
		b = append(b, 0, 0xff)
		s = s[i+1:]
	}
}

// prefixEnd is the smallest string above every string that starts with prefix;
// empty means there is no bound.
func prefixEnd(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}
