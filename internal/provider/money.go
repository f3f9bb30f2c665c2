package provider

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// amountDigitsMax keeps every amount, and a sum of a thousand of them, within 64 bits.
const amountDigitsMax = 15

// money reads an amount in minor units and its currency, both zero where the
// body has none.
func (r *Reading) money(v values) (int64, string, error) {
	if r.Sum != nil {
		return r.Sum.read(v)
	}
	amount, currency := v.first(r.amountPaths(v)), v.first(r.Currency)
	if !amount.there() || !currency.there() {
		return 0, "", nil
	}
	code, ok := currencyCode(currency)
	if !ok {
		return 0, "", schema("currency_invalid")
	}
	n, ok := amount.integer()
	switch {
	case r.Text:
		n, ok = minorText(amount)
	case r.Decimal:
		n, ok = minorUnits(amount, code)
	}
	if !ok || n < 0 {
		return 0, "", schema("amount_invalid")
	}
	return n, code, nil
}

// amountPaths returns where the amount stands, which can depend on the state.
func (r *Reading) amountPaths(v values) []string {
	if rule, ok := r.state(v); ok && rule.Amount != nil {
		return rule.Amount
	}
	return r.Amount
}

func currencyCode(l leaf) (string, bool) {
	if l.kind != '"' || len(l.text) != 3 {
		return "", false
	}
	code := strings.ToUpper(l.text)
	for i := range len(code) {
		if code[i] < 'A' || code[i] > 'Z' {
			return "", false
		}
	}
	return code, true
}

// minorUnits reads decimal text in major units: "199.00" dollars are 19900
// cents. More digits after the point than the currency has must be zeros.
func minorUnits(l leaf, currency string) (int64, bool) {
	if l.kind != '"' || len(l.text) > NumberBytesMax {
		return 0, false
	}
	whole, fraction, point := strings.Cut(l.text, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, false
	}
	places := decimals(currency)
	if len(fraction) > places {
		if strings.Trim(fraction[places:], "0") != "" {
			return 0, false
		}
		fraction = fraction[:places]
	}
	text := whole + fraction + strings.Repeat("0", places-len(fraction))
	if len(strings.TrimLeft(text, "0")) > amountDigitsMax {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// minorText reads a whole number of minor units that stands there as text.
func minorText(l leaf) (int64, bool) {
	if l.kind != '"' || !digits(l.text) || len(l.text) > amountDigitsMax {
		return 0, false
	}
	n, err := strconv.ParseInt(l.text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == l.text
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// majorUnits writes an amount the way minorUnits reads it.
func majorUnits(minor int64, currency string) string {
	places := decimals(currency)
	text := strconv.FormatInt(minor, 10)
	if places == 0 {
		return text
	}
	if len(text) <= places {
		text = strings.Repeat("0", places-len(text)+1) + text
	}
	return text[:len(text)-places] + "." + text[len(text)-places:]
}

// decimals returns the digits after the point that a currency has by ISO 4217.
func decimals(currency string) int {
	switch currency {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	}
	return 2
}

// sumElementsMax bounds a sum; amountDigitsMax relies on it.
const sumElementsMax = 1000

// read adds up the elements that count. They must share one currency.
func (s *Sum) read(v values) (total int64, currency string, err error) {
	array := v.at(s.Array)
	if array.kind != '[' {
		return 0, "", nil
	}
	elements, inner := jsontext.NewDecoder(bytes.NewBuffer(array.raw)), s.element()
	if _, err := elements.ReadToken(); err != nil {
		return 0, "", schema(CodeMalformed)
	}
	for n := 0; elements.PeekKind() != ']'; n++ {
		raw, err := elements.ReadValue()
		if err != nil || n == sumElementsMax {
			return 0, "", schema("amount_invalid")
		}
		amount, code, err := s.counted(raw, inner)
		if err != nil {
			return 0, "", err
		}
		if code == "" {
			continue
		}
		if currency != "" && currency != code {
			return 0, "", schema("currency_mixed")
		}
		total, currency = total+amount, code
	}
	return total, currency, nil
}

// counted reads one element; the currency is empty if it does not count.
func (s *Sum) counted(raw []byte, inner *tree) (int64, string, error) {
	v, err := scan(raw, inner)
	if err != nil {
		return 0, "", permanent(err)
	}
	if !v.all(s.Where) {
		return 0, "", nil
	}
	code, ok := currencyCode(v.at(s.Currency))
	if !ok {
		return 0, "", schema("currency_invalid")
	}
	amount, ok := minorUnits(v.at(s.Amount), code)
	if !ok {
		return 0, "", schema("amount_invalid")
	}
	return amount, code, nil
}
