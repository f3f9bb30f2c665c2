package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
)

func TestMinorUnits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, currency string
		want           int64
		ok             bool
	}{
		{"42.00", "USD", 4200, true},
		{"42", "USD", 4200, true},
		{"42.5", "USD", 4250, true},
		{"0.01", "USD", 1, true},
		{"0", "USD", 0, true},
		{"000042.00", "USD", 4200, true},
		{"42.1200", "USD", 4212, true},
		{"42.125", "USD", 0, false},
		{"4200", "JPY", 4200, true},
		{"4200.00", "JPY", 4200, true},
		{"4200.50", "JPY", 0, false},
		{"1.234", "KWD", 1234, true},
		{"1.2345", "CLF", 12345, true},
		{"9999999999999.99", "USD", 999999999999999, true},
		{"99999999999999.99", "USD", 0, false},
		{"-42.00", "USD", 0, false},
		{"+42.00", "USD", 0, false},
		{"42,00", "USD", 0, false},
		{"4e2", "USD", 0, false},
		{".5", "USD", 0, false},
		{"5.", "USD", 0, false},
		{"", "USD", 0, false},
		{" 42.00", "USD", 0, false},
		{"0x2a", "USD", 0, false},
		{"٤٢", "USD", 0, false},
		{"1_000", "USD", 0, false},
	} {
		got, ok := minorUnits(leaf{kind: '"', text: tt.text}, tt.currency)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q %s: %d, %t; want %d, %t", tt.text, tt.currency, got, ok, tt.want, tt.ok)
		}
	}
	if _, ok := minorUnits(leaf{kind: '0', text: "42"}, "USD"); ok {
		t.Error("a number was taken for decimal text")
	}
}

// Minor units as text are digits alone, and one text for one amount.
func TestMinorUnitsAsText(t *testing.T) {
	t.Parallel()
	type read struct {
		Amount   int64
		Currency string
		Code     string
	}
	r := &Reading{Amount: []string{"amount"}, Currency: []string{"currency"}, Text: true}
	tree := newTree()
	tree.addKind(Kind{Read: r})
	for amount, want := range map[string]read{
		`"4200"`: {4200, "JPY", ""}, `"0"`: {0, "JPY", ""}, `"999999999999999"`: {999999999999999, "JPY", ""}, `null`: {},
		`"1000000000000000"`: {Code: "amount_invalid"}, `"042"`: {Code: "amount_invalid"}, `"-42"`: {Code: "amount_invalid"}, `"+42"`: {Code: "amount_invalid"},
		`"42.00"`: {Code: "amount_invalid"}, `"4e2"`: {Code: "amount_invalid"}, `""`: {Code: "amount_invalid"}, `" 42"`: {Code: "amount_invalid"},
		`"1_000"`: {Code: "amount_invalid"}, `"٤٢"`: {Code: "amount_invalid"}, `4200`: {Code: "amount_invalid"}, `true`: {Code: "amount_invalid"},
	} {
		v, err := scan([]byte(`{"amount":`+amount+`,"currency":"jpy"}`), tree)
		if err != nil {
			t.Fatal(err)
		}
		n, currency, err := r.money(v)
		got := read{Amount: n, Currency: currency}
		if err != nil {
			got.Code = fault.CodeOf(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", amount, diff)
		}
	}
}

func TestMajorUnitsAreReadBack(t *testing.T) {
	t.Parallel()
	for currency, want := range map[string][]string{
		"USD": {"0.01", "0.99", "1.00", "42.00"}, "JPY": {"1", "99", "100", "4200"}, "KWD": {"0.001", "0.099", "0.100", "4.200"},
	} {
		var got []string
		for _, minor := range []int64{1, 99, 100, 4200} {
			text := majorUnits(minor, currency)
			got = append(got, text)
			if back, ok := minorUnits(leaf{kind: '"', text: text}, currency); back != minor || !ok {
				t.Errorf("%d %s became %q and %d", minor, currency, text, back)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	r := &Reading{Sum: &Sum{Array: "list", Amount: "amount", Currency: "currency", Where: []Check{Is("kind", "refund")}}}
	tree := newTree()
	tree.addKind(Kind{Read: r})
	many := ""
	for range sumElementsMax {
		many += `{},`
	}
	for _, tt := range []struct {
		name, list string
		want       int64
		currency   string
		code       string
	}{
		{"all that count", `[{"kind":"refund","amount":"1.00","currency":"USD"},{"kind":"sale","amount":"5.00","currency":"EUR"},{"kind":"refund","amount":"0.50","currency":"usd"}]`, 150, "USD", ""},
		{"nothing that counts", `[{"kind":"sale","amount":"5.00","currency":"USD"}]`, 0, "", ""},
		{"no elements", `[]`, 0, "", ""},
		{"null", `null`, 0, "", ""},
		{"two currencies", `[{"kind":"refund","amount":"1","currency":"USD"},{"kind":"refund","amount":"1","currency":"EUR"}]`, 0, "", "currency_mixed"},
		{"no currency", `[{"kind":"refund","amount":"1"}]`, 0, "", "currency_invalid"},
		{"no amount", `[{"kind":"refund","currency":"USD"}]`, 0, "", "amount_invalid"},
		{"an amount as a number", `[{"kind":"refund","amount":1.5,"currency":"USD"}]`, 0, "", "amount_invalid"},
		{"names that differ in case in an element", `[{"kind":"refund","amount":"1","Amount":"2","currency":"USD"}]`, 0, "", CodeAmbiguous},
		{"an element that is no object", `["refund"]`, 0, "", CodeMalformed},
		{"more elements than are added up", `[` + many + `{}]`, 0, "", "amount_invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := scan([]byte(`{"list":`+tt.list+`}`), tree)
			if err != nil {
				t.Fatal(err)
			}
			got, currency, err := r.money(v)
			code := ""
			if err != nil {
				code = fault.CodeOf(err)
				if fault.KindOf(err) != fault.Permanent {
					t.Errorf("%v is %s", err, fault.KindOf(err))
				}
			}
			if got != tt.want || currency != tt.currency || code != tt.code {
				t.Errorf("got %d %s %q, want %d %s %q", got, currency, code, tt.want, tt.currency, tt.code)
			}
		})
	}
}
