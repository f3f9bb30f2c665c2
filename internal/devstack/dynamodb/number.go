package dynamodb

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Limits of the N type, from the DynamoDB developer guide: 38 significant
// digits, magnitude from 1E-130 to 9.99…E+125.
const (
	numberDigitsMax = 38
	numberExpMax    = 126  // of the form 0.d × 10^exp
	numberExpMin    = -129 // the same
)

var (
	errNumberSyntax    = errors.New("The parameter cannot be converted to a numeric value")
	errNumberPrecision = errors.New("Attempting to store more than 38 significant digits in a Number")
	errNumberOverflow  = errors.New("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errNumberUnderflow = errors.New("Number underflow. Attempting to store a number with magnitude smaller than supported range")
)

// number is an exact decimal in its only form: zero is the zero value, any other
// is ±0.d₁d₂…dₙ × 10^exp with d₁ and dₙ not '0'. Two numbers are equal exactly
// when their fields are, so 1, 1.0 and 1E0 are one value.
type number struct {
	negative bool
	digits   string
	exp      int
}

// parseNumber reads a decimal as the service accepts it: an optional sign,
// digits with an optional point, an optional exponent; nothing else, no spaces.
func parseNumber(text string) (number, error) {
	mantissa, exponent, hasExponent := cutExponent(text)
	exp := 0
	if hasExponent {
		var ok bool
		if exp, ok = parseExponent(exponent); !ok {
			return number{}, errNumberSyntax
		}
	}
	negative := strings.HasPrefix(mantissa, "-")
	if negative || strings.HasPrefix(mantissa, "+") {
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(fraction) == 0 || !allDigits(whole) || !allDigits(fraction) {
		return number{}, errNumberSyntax
	}
	return normalise(negative, whole+fraction, exp+len(whole))
}

func cutExponent(text string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// parseExponent clamps a magnitude beyond six digits: no mantissa that fits into
// a request can bring it back into the supported range.
func parseExponent(text string) (int, bool) {
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	if text == "" || !allDigits(text) {
		return 0, false
	}
	text = strings.TrimLeft(text, "0")
	const clamp = 1 << 40
	exp := clamp
	if len(text) <= 9 {
		exp, _ = strconv.Atoi("0" + text)
	}
	if negative {
		exp = -exp
	}
	return exp, true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// normalise trims the zeros of ±0.digits × 10^exp and checks the limits.
func normalise(negative bool, digits string, exp int) (number, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exp -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return number{}, nil
	case len(trimmed) > numberDigitsMax:
		return number{}, errNumberPrecision
	case exp > numberExpMax:
		return number{}, errNumberOverflow
	case exp < numberExpMin:
		return number{}, errNumberUnderflow
	}
	return number{negative: negative, digits: trimmed, exp: exp}, nil
}

// appendText writes the plain notation that the service answers with: no
// exponent, no superfluous zeros.
func (n number) appendText(b []byte) []byte {
	if n.digits == "" {
		return append(b, '0')
	}
	if n.negative {
		b = append(b, '-')
	}
	switch {
	case n.exp <= 0:
		b = append(b, "0."...)
		b = appendZeros(b, -n.exp)
		return append(b, n.digits...)
	case n.exp >= len(n.digits):
		b = append(b, n.digits...)
		return appendZeros(b, n.exp-len(n.digits))
	}
	b = append(b, n.digits[:n.exp]...)
	b = append(b, '.')
	return append(b, n.digits[n.exp:]...)
}

func appendZeros(b []byte, count int) []byte {
	for range count {
		b = append(b, '0')
	}
	return b
}

func (n number) String() string { return string(n.appendText(nil)) }

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// compare orders by value. Digits are trimmed fractions, so text order is value
// order once sign and exponent agree.
func (n number) compare(m number) int {
	if s, t := n.sign(), m.sign(); s != t {
		return s - t
	}
	magnitude := n.exp - m.exp
	if magnitude == 0 {
		magnitude = strings.Compare(n.digits, m.digits)
	}
	return magnitude * n.sign()
}

// plus adds exactly; a sum that needs more than 38 digits is an error, as the
// service never rounds.
func (n number) plus(m number) (number, error) {
	scale := min(n.exp-len(n.digits), m.exp-len(m.digits))
	sum := n.scaled(scale)
	sum.Add(sum, m.scaled(scale))
	negative := sum.Sign() < 0
	digits := sum.Abs(sum).String()
	return normalise(negative, digits, scale+len(digits))
}

func (n number) minus(m number) (number, error) {
	if m.digits != "" {
		m.negative = !m.negative
	}
	return n.plus(m)
}

// scaled is n as a whole multiple of 10^scale; scale is never above n's own.
func (n number) scaled(scale int) *big.Int {
	out := new(big.Int)
	if n.digits == "" {
		return out
	}
	out.SetString(n.digits, 10)
	shift := int64(n.exp - len(n.digits) - scale)
	out.Mul(out, new(big.Int).Exp(big.NewInt(10), big.NewInt(shift), nil))
	if n.negative {
		out.Neg(out)
	}
	return out
}

// size in bytes: one byte for two digits, one more, and one for a minus sign;
// zero takes one.
func (n number) size() int {
	if n.digits == "" {
		return 1
	}
	size := (len(n.digits)+1)/2 + 1
	if n.negative {
		size++
	}
	return size
}

// appendKey writes bytes whose order is the numbers' order, and of which none is
// a prefix of another: a sign byte, the exponent, the digits, a terminator; for
// negative numbers all after the sign complemented.
func (n number) appendKey(b []byte) []byte {
	const negativeSign, zeroSign, positiveSign = 1, 2, 3
	switch n.sign() {
	case 0:
		return append(b, zeroSign)
	case 1:
		return n.appendMagnitude(append(b, positiveSign))
	}
	b = append(b, negativeSign)
	start := len(b)
	b = n.appendMagnitude(b)
	for i := start; i < len(b); i++ {
		b[i] = ^b[i]
	}
	return b
}

func (n number) appendMagnitude(b []byte) []byte {
	biased := n.exp - numberExpMin
	b = append(b, byte(biased>>8), byte(biased))
	b = append(b, n.digits...)
	return append(b, 0)
}

// wholeNumber is the number of a length or count.
func wholeNumber(n int) number {
	out, _ := normalise(false, strconv.Itoa(n), len(strconv.Itoa(n)))
	return out
}
