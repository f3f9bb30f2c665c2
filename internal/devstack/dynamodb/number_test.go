package dynamodb

import (
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestANumberIsWrittenPlainlyAndExactly(t *testing.T) {
	nines := strings.Repeat("9", 38)
	got := map[string]string{}
	want := map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e999999": "0",
		"1": "1", "+1": "1", "1.0": "1", "1E0": "1", "001": "1", "-1.50": "-1.5",
		"1e2": "100", "1E+2": "100", "100e-2": "1", "0.0001e5": "10", ".5": "0.5", "5.": "5",
		"12345.678":               "12345.678",
		nines:                     nines,
		nines + "000":             nines + "000",
		"0." + nines:              "0." + nines,
		"1e-130":                  "0." + strings.Repeat("0", 129) + "1",
		"9." + nines[1:] + "e125": nines + strings.Repeat("0", 88),
	}
	for in := range want {
		n, err := parseNumber(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		got[in] = n.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnImpossibleNumberIsRefusedWithItsOwnReason(t *testing.T) {
	want := map[string]error{
		"": errNumberSyntax, "-": errNumberSyntax, ".": errNumberSyntax, "1e": errNumberSyntax, "e1": errNumberSyntax,
		" 1": errNumberSyntax, "1 ": errNumberSyntax, "1_0": errNumberSyntax, "0x10": errNumberSyntax,
		"Infinity": errNumberSyntax, "NaN": errNumberSyntax, "1.2.3": errNumberSyntax, "--1": errNumberSyntax, "1e1.0": errNumberSyntax,
		strings.Repeat("1", 39): errNumberPrecision, "0." + strings.Repeat("3", 39): errNumberPrecision,
		"1e126": errNumberOverflow, "-1e126": errNumberOverflow, "1e99999999999": errNumberOverflow,
		"1e-131": errNumberUnderflow, "-1e-131": errNumberUnderflow, "1e-99999999999": errNumberUnderflow,
	}
	got := map[string]error{}
	for in := range want {
		_, got[in] = parseNumber(in)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Error(diff)
	}
}

func TestArithmeticIsExactOrRefused(t *testing.T) {
	tests := []struct{ left, operator, right, want string }{
		{"0.1", "+", "0.2", "0.3"},
		{"12345678901234567890123456789012345677", "+", "1", "12345678901234567890123456789012345678"},
		{"1", "-", "1", "0"},
		{"0", "-", "0", "0"},
		{"5", "-", "7.5", "-2.5"},
		{"-3", "+", "-4", "-7"},
		{"1e125", "+", "0", "1" + strings.Repeat("0", 125)},
		{"5", "+", "1e-37", "5.0000000000000000000000000000000000001"},
		{"5", "+", "1e-38", errNumberPrecision.Error()},
		{"1e125", "+", "1e-130", errNumberPrecision.Error()},
		{"9e125", "+", "9e125", errNumberOverflow.Error()},
		{"1e-130", "-", "1.1e-130", errNumberUnderflow.Error()},
	}
	for _, test := range tests {
		left, right := must(t, test.left), must(t, test.right)
		result, err := left.plus(right)
		if test.operator == "-" {
			result, err = left.minus(right)
		}
		got := result.String()
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %s %s is %s, want %s", test.left, test.operator, test.right, got, test.want)
		}
	}
}

func TestNumbersSortByValueAlsoAsKeys(t *testing.T) {
	ascending := []string{
		"-9e125", "-100", "-11", "-10.5", "-10", "-9", "-1", "-0.5", "-0.05", "-1e-130",
		"0", "1e-130", "0.05", "0.049e1", "0.5", "1", "9", "10", "10.5", "11", "100", "9e125",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			want := sign(i - j)
			left, right := must(t, a), must(t, b)
			byValue := sign(left.compare(right))
			byKey := strings.Compare(string(left.appendKey(nil)), string(right.appendKey(nil)))
			if byValue != want || byKey != want {
				t.Errorf("%s against %s: by value %d, by key %d, want %d", a, b, byValue, byKey, want)
			}
		}
	}
}

func TestANumberIsBilledByItsDigits(t *testing.T) {
	// Sizes measured on DynamoDB Local 3.3.1 through the capacity it reports.
	want := map[string]int{
		"0": 1, "1": 2, "-1": 3, "12": 2, "123": 3, "-123": 4, "1000": 2, "0.001": 2, "10.5": 3, "123.45": 4,
		"12345678901234567890123456789012345678": 20, "-12345678901234567890123456789012345678": 21,
	}
	got := map[string]int{}
	for in := range want {
		got[in] = must(t, in).size()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func must(t testing.TB, text string) number {
	t.Helper()
	n, err := parseNumber(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// FuzzNumber compares parsing, order and arithmetic with math/big.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1", "-12.50", "1e125", "1e-130", ".5", "5.", "+7e-3", "99999999999999999999999999999999999999", "abc", "1e", "--1"} {
		f.Add(seed, "3.7")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := parseNumber(a)
		if err != nil {
			return
		}
		again, err := parseNumber(x.String())
		if err != nil || again != x {
			t.Fatalf("%q is written as %q, which reads as %v, %v", a, x, again, err)
		}
		if len(a) < 300 {
			if exact, ok := new(big.Rat).SetString(a); ok && exact.Cmp(rational(x)) != 0 {
				t.Fatalf("%q reads as %s", a, x)
			}
		}
		y, err := parseNumber(b)
		if err != nil {
			return
		}
		order := rational(x).Cmp(rational(y))
		if got := sign(x.compare(y)); got != order {
			t.Fatalf("%s against %s: %d, want %d", x, y, got, order)
		}
		if got := strings.Compare(string(x.appendKey(nil)), string(y.appendKey(nil))); got != order {
			t.Fatalf("keys of %s and %s compare as %d, want %d", x, y, got, order)
		}
		if sum, err := x.plus(y); err == nil {
			if want := new(big.Rat).Add(rational(x), rational(y)); rational(sum).Cmp(want) != 0 {
				t.Fatalf("%s + %s = %s", x, y, sum)
			}
		}
	})
}

func rational(n number) *big.Rat {
	out, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("a number's text is not a decimal: " + n.String())
	}
	return out
}
