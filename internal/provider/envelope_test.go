package provider_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

func bodyCode(err error) string {
	if b, ok := errors.AsType[*provider.BadBody](err); ok {
		return b.Code
	}
	return ""
}

// Proves P3: an event of a type outside the catalogue is read as far as any is,
// so that the endpoint can decide whether to keep it.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	a := sample()
	a.Shape = []provider.Check{provider.Lacks("test")}
	// Of 120 letters b, a slash and 12345678.
	const digest = "sha256:7de60a0761c593dcb5c1fd0a489375c62e11ecfdebb7a4659cbd6c182f5b01b5"
	long := strings.Repeat("i", 101)
	for _, tt := range []struct {
		name, body string
		want       provider.Envelope
		code       string
	}{
		{"a known type", `{"id":"e1","type":"paid","object":"o1","at":1772366400}`, provider.Envelope{EventID: "e1", Type: "paid", ObjectID: "o1", CreatedAt: time.Unix(1772366400, 0).UTC()}, ""},
		{"a version", `{"id":"e1","type":"changed","object":"o1","version":7}`, provider.Envelope{EventID: "e1", Type: "changed", ObjectID: "o1", ObjectVersion: "7"}, ""},
		{"a version that is none", `{"id":"e1","type":"changed","object":"o1","version":-7}`, provider.Envelope{EventID: "e1", Type: "changed", ObjectID: "o1"}, ""},
		{"a version with a fraction", `{"id":"e1","type":"changed","object":"o1","version":7.0}`, provider.Envelope{EventID: "e1", Type: "changed", ObjectID: "o1"}, ""},
		{"a round is no version", `{"id":"e1","type":"moved","object":"o1","round":7}`, provider.Envelope{EventID: "e1", Type: "moved", ObjectID: "o1"}, ""},
		{"an unknown type", `{"id":"e1","type":"unheard.of","object":"o1"}`, provider.Envelope{EventID: "e1", Type: "unheard.of", ObjectID: "o1"}, ""},
		{"an object's id as a number", `{"id":"e1","type":"paid","object":820982911946154508}`, provider.Envelope{EventID: "e1", Type: "paid", ObjectID: "820982911946154508"}, ""},
		{"an object's id that cannot be kept", `{"id":"e1","type":"paid","object":"` + long + `"}`, provider.Envelope{EventID: "e1", Type: "paid"}, ""},
		{"an object's id with a line end", `{"id":"e1","type":"paid","object":"o\n1"}`, provider.Envelope{EventID: "e1", Type: "paid"}, ""},
		{"a time in words", `{"id":"e1","type":"paid","at":"2026-03-01T12:00:00+01:00"}`, provider.Envelope{EventID: "e1", Type: "paid", CreatedAt: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)}, ""},
		{"a time that is none", `{"id":"e1","type":"paid","at":"yesterday"}`, provider.Envelope{EventID: "e1", Type: "paid"}, ""},
		{"a time before 1970", `{"id":"e1","type":"paid","at":-1}`, provider.Envelope{EventID: "e1", Type: "paid"}, ""},
		{"the second place of the id", `{"batch":"b","item":"1","type":"paid"}`, provider.Envelope{EventID: "b/1", Type: "paid"}, ""},
		{"the first place counts", `{"id":"e1","batch":"b","item":"1","type":"paid"}`, provider.Envelope{EventID: "e1", Type: "paid"}, ""},
		{"half of the second place", `{"batch":"b","type":"paid"}`, provider.Envelope{}, provider.CodeNoID},
		{"a first place that cannot be read is not passed over", `{"id":7,"batch":"b","item":"1","type":"paid"}`, provider.Envelope{}, provider.CodeBadID},
		{"a long id of several parts is kept as a digest", `{"batch":"` + strings.Repeat("b", 120) + `","item":"12345678","type":"paid"}`,
			provider.Envelope{EventID: digest, Type: "paid"}, ""},
		{"not the shape of an event", `{"id":"e1","type":"paid","test":true}`, provider.Envelope{}, provider.CodeUnexpected},
		{"a type that is too long", `{"id":"e1","type":"` + strings.Repeat("t", 81) + `"}`, provider.Envelope{}, provider.CodeBadType},
		{"a type with a quote", `{"id":"e1","type":"a\"b"}`, provider.Envelope{}, provider.CodeBadType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := a.Envelope(nil, []byte(tt.body))
			if diff := cmp.Diff(tt.want, got); diff != "" || bodyCode(err) != tt.code {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	a := sample()
	at := time.Unix(1772366400, 0).UTC()
	for _, tt := range []struct {
		name      string
		eventType webhook.EventType
		body      string
		want      webhook.Facts
		code      string
	}{
		{"money", "paid", `{"object":"o1","at":1772366400,"amount":4200,"currency":"eur","order":"or1"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "o1", State: "succeeded", Amount: 4200, Currency: "EUR", Credit: 1, ParentID: "or1", CreatedAt: at}, ""},
		{"a version", "changed", `{"object":"o1","version":0}`, webhook.Facts{ObjectType: webhook.Object, ObjectID: "o1", HasVersion: true}, ""},
		{"a round and a state", "moved", `{"object":"o1","round":3,"status":"off"}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "o1", State: "paused", Version: 3, HasVersion: true}, ""},
		{"a round that a time names", "moved", `{"object":"o1","round":"2026-03-01T13:00:00.9+01:00","status":"on"}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "o1", State: "active", Version: 1772366400, HasVersion: true}, ""},
		{"no round", "moved", `{"object":"o1","status":"on"}`, webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "o1", State: "active"}, ""},
		{"no object", "paid", `{"amount":4200,"currency":"eur"}`, webhook.Facts{}, "object_id_missing"},
		{"an object's id with a space", "paid", `{"object":"o 1","amount":4200,"currency":"eur"}`, webhook.Facts{}, "object_id_invalid"},
		{"an object's id that is too long", "paid", `{"object":"` + strings.Repeat("o", 101) + `","amount":4200,"currency":"eur"}`, webhook.Facts{}, "object_id_invalid"},
		{"an object's id with a fraction", "paid", `{"object":1.0,"amount":4200,"currency":"eur"}`, webhook.Facts{}, "object_id_missing"},
		{"no amount", "paid", `{"object":"o1","currency":"eur"}`, webhook.Facts{}, "amount_missing"},
		{"no currency", "paid", `{"object":"o1","amount":4200}`, webhook.Facts{}, "amount_missing"},
		{"an amount with a fraction", "paid", `{"object":"o1","amount":42.5,"currency":"eur"}`, webhook.Facts{}, "amount_invalid"},
		{"an amount with an exponent", "paid", `{"object":"o1","amount":42e2,"currency":"eur"}`, webhook.Facts{}, "amount_invalid"},
		{"an amount beyond 64 bits", "paid", `{"object":"o1","amount":9223372036854775808,"currency":"eur"}`, webhook.Facts{}, "amount_invalid"},
		{"an amount as text", "paid", `{"object":"o1","amount":"4200","currency":"eur"}`, webhook.Facts{}, "amount_invalid"},
		{"a negative amount", "paid", `{"object":"o1","amount":-4200,"currency":"eur"}`, webhook.Facts{}, "amount_invalid"},
		{"a currency of four letters", "paid", `{"object":"o1","amount":4200,"currency":"euro"}`, webhook.Facts{}, "currency_invalid"},
		{"a currency in digits", "paid", `{"object":"o1","amount":4200,"currency":"978"}`, webhook.Facts{}, "currency_invalid"},
		{"no version", "changed", `{"object":"o1"}`, webhook.Facts{}, "version_missing"},
		{"a version of null", "changed", `{"object":"o1","version":null}`, webhook.Facts{}, "version_missing"},
		{"a negative version", "changed", `{"object":"o1","version":-1}`, webhook.Facts{}, "version_invalid"},
		{"a version as text", "changed", `{"object":"o1","version":"1"}`, webhook.Facts{}, "version_invalid"},
		{"a version that a time names", "changed", `{"object":"o1","version":"2026-03-01T12:00:00Z"}`, webhook.Facts{}, "version_invalid"},
		{"a round as text", "moved", `{"object":"o1","round":"3","status":"on"}`, webhook.Facts{}, "version_invalid"},
		{"a round that a time of nobody names", "moved", `{"object":"o1","round":"0001-01-01T00:00:00Z","status":"on"}`, webhook.Facts{}, "version_invalid"},
		{"a round with a fraction", "moved", `{"object":"o1","round":1.5,"status":"on"}`, webhook.Facts{}, "version_invalid"},
		{"an unknown status", "moved", `{"object":"o1","status":"upside down"}`, webhook.Facts{}, "state_unknown"},
		{"no status", "moved", `{"object":"o1"}`, webhook.Facts{}, "state_unknown"},
		{"a body that is none", "paid", `nothing`, webhook.Facts{}, provider.CodeMalformed},
		{"names that differ in case", "paid", `{"object":"o1","Object":"o2"}`, webhook.Facts{}, provider.CodeAmbiguous},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, ok := a.Kind(tt.eventType)
			if !ok {
				t.Fatal("no such type")
			}
			got, err := a.Facts(k, tt.eventType, []byte(tt.body))
			code := ""
			if err != nil {
				code = fault.CodeOf(err)
				if fault.KindOf(err) != fault.Permanent {
					t.Errorf("%v is %s", err, fault.KindOf(err))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || code != tt.code {
				t.Errorf("code %q, want %q\n%s", code, tt.code, diff)
			}
		})
	}
	if _, err := a.Facts(provider.Kind{Name: "payment.unheard_of"}, "unheard.of", []byte(`{}`)); fault.CodeOf(err) != "kind_unknown" {
		t.Errorf("a kind of nobody: %v", err)
	}
}

func TestSampleOptions(t *testing.T) {
	t.Parallel()
	a := sample()
	at := time.Unix(1772366400, 0).UTC()
	facts := func(o provider.SampleOptions) webhook.Facts {
		t.Helper()
		s, err := a.Sample(o)
		if err != nil {
			t.Fatal(err)
		}
		k, _ := a.Kind(o.Type)
		f, err := a.Facts(k, o.Type, s.Body)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := webhook.Facts{
		ObjectType: webhook.Payment, ObjectID: "o9", State: "succeeded", Amount: 77, Currency: "JPY", Credit: 1, ParentID: "or9", CreatedAt: at,
	}
	got := facts(provider.SampleOptions{Type: "paid", EventID: "e9", ObjectID: "o9", ParentID: "or9", Amount: 77, Currency: "jpy", At: at})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want = webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "ob_1", State: "paused", Version: 5, HasVersion: true}
	if diff := cmp.Diff(want, facts(provider.SampleOptions{Type: "moved", EventID: "e9", State: "paused", Version: 5})); diff != "" {
		t.Error(diff)
	}
	moved := a.Catalogue["moved"]
	moved.Read.Sample = []byte(`{"id":"x","type":"x","object":"ob_1","round":"2026-03-01T12:00:00Z","status":"on"}`)
	want.Version = 1772366405
	if diff := cmp.Diff(want, facts(provider.SampleOptions{Type: "moved", EventID: "e9", State: "paused", Version: 1772366405})); diff != "" {
		t.Errorf("a round that a time names: %s", diff)
	}
	for name, o := range map[string]provider.SampleOptions{
		"a type outside the catalogue":             {Type: "unheard.of"},
		"a state that the type does not have":      {Type: "moved", State: "cancelled"},
		"another state where the type decides":     {Type: "paid", State: "failed"},
		"an id that no sender has":                 {Type: "paid", EventID: "e 9"},
		"a currency that is none":                  {Type: "paid", EventID: "e9", Currency: "euro"},
		"an object's id that could not be applied": {Type: "paid", EventID: "e9", ObjectID: "o 9"},
	} {
		if s, err := a.Sample(o); err == nil {
			t.Errorf("%s: %s", name, s.Body)
		}
	}
}
