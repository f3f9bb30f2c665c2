package sqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	attributesMax    = 10
	attributeNameMax = 256
	groupIDMax       = 128
)

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary)(\..+)?$`)
	groupID       = regexp.MustCompile("^[A-Za-z0-9!-/:-@\\[-`{-~]{1," + strconv.Itoa(groupIDMax) + "}$")
)

// attributeValue is a message attribute as it travels.
type attributeValue struct {
	DataType    string
	StringValue *string `json:"StringValue,omitempty"`
	BinaryValue []byte  `json:"BinaryValue,omitempty"`
}

// value returns the bytes that are stored, counted and summed.
func (v attributeValue) value() []byte {
	if strings.HasPrefix(v.DataType, "Binary") {
		return v.BinaryValue
	}
	if v.StringValue == nil {
		return nil
	}
	return []byte(*v.StringValue)
}

// checkBody refuses a body that is empty or holds a character that XML cannot:
// the service allows #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF.
func checkBody(body string) error {
	if body == "" {
		return missingParameter("MessageBody")
	}
	if !allowed(body) {
		return invalidContents("The message has a character that is not allowed.")
	}
	return nil
}

func allowed(text string) bool {
	for _, c := range text {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0xFFFE || c == 0xFFFF {
			return false
		}
	}
	return true
}

// checkAttributes refuses attributes that the service would not take.
func checkAttributes(attributes map[string]attributeValue) error {
	if len(attributes) > attributesMax {
		return invalidParameter("A message has at most %d attributes.", attributesMax)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		v, lower := attributes[name], strings.ToLower(name)
		switch {
		case len(name) > attributeNameMax || !attributeName.MatchString(name):
			return invalidParameter("A message attribute's name must be 1 to %d letters, digits, _, - and single periods.", attributeNameMax)
		case strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon."):
			return invalidParameter("A message attribute's name must not start with AWS. or Amazon.")
		case len(v.DataType) > attributeNameMax || !attributeType.MatchString(v.DataType):
			return invalidParameter("The message attribute %s must have the type String, Number or Binary.", name)
		case len(v.value()) == 0:
			return invalidParameter("The message attribute %s must have a value of its type.", name)
		case strings.HasPrefix(v.DataType, "Number") && !isNumber(*v.StringValue):
			return invalidParameter("The message attribute %s must be a number.", name)
		case v.StringValue != nil && !allowed(*v.StringValue):
			return invalidContents("The message attribute %s has a character that is not allowed.", name)
		}
	}
	return nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// size counts what the limits count: the body, and each attribute's name, type and value.
func size(body string, attributes map[string]attributeValue) int {
	n := len(body)
	for name, v := range attributes {
		n += len(name) + len(v.DataType) + len(v.value())
	}
	return n
}

func sum(body string) string {
	digest := md5.Sum([]byte(body))
	return hex.EncodeToString(digest[:])
}

// sumAttributes is the digest that the developer guide defines: in the order of
// names, each attribute's name, type and value after their lengths, with one byte
// before the value that tells text from bytes. Empty for no attributes.
func sumAttributes(attributes map[string]attributeValue) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	add := func(part []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		v := attributes[name]
		add([]byte(name))
		add([]byte(v.DataType))
		if strings.HasPrefix(v.DataType, "Binary") {
			b = append(b, 2)
		} else {
			b = append(b, 1)
		}
		add(v.value())
	}
	digest := md5.Sum(b)
	return hex.EncodeToString(digest[:])
}

// pick returns the attributes that a receiver asked for: by name, by what stands
// before a final .* as a prefix, or all of them.
func pick(attributes map[string]attributeValue, wanted []string) map[string]attributeValue {
	picked := map[string]attributeValue{}
	for name, v := range attributes {
		for _, w := range wanted {
			prefix, isPrefix := strings.CutSuffix(w, ".*")
			if w == "All" || w == name || isPrefix && strings.HasPrefix(name, prefix) {
				picked[name] = v
				break
			}
		}
	}
	return picked
}
