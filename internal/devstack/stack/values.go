package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// text, number, rate and flag take what CloudFormation takes for them: parameters may
// turn a number into text and the other way round.
type (
	text   string
	number int
	rate   float64
	flag   bool
)

// ignored is a property that means nothing on one machine.
type ignored struct{}

func (t *text) UnmarshalJSON(b []byte) error {
	s, err := scalar(b)
	*t = text(s)
	return err
}

func (n *number) UnmarshalJSON(b []byte) error {
	s, err := scalar(b)
	if err != nil {
		return err
	}
	value, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is no whole number", s)
	}
	*n = number(value)
	return nil
}

func (r *rate) UnmarshalJSON(b []byte) error {
	s, err := scalar(b)
	if err != nil {
		return err
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", s)
	}
	*r = rate(value)
	return nil
}

func (f *flag) UnmarshalJSON(b []byte) error {
	s, err := scalar(b)
	if err != nil {
		return err
	}
	value, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", s)
	}
	*f = flag(value)
	return nil
}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

func scalar(b []byte) (string, error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return "", err
	}
	switch v.(type) {
	case string, float64, bool:
	default:
		return "", fmt.Errorf("want text, a number or a truth value, not %T", v)
	}
	s := scalarText(v)
	if id, ok := unfilled(s); ok {
		return "", fmt.Errorf("refers to %s, which the local stack does not create", id)
	}
	return s, nil
}

// decode reads properties strictly: one that into does not name is an error.
func decode(properties, into any) error {
	if properties == nil {
		return nil
	}
	encoded, err := json.Marshal(properties)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
