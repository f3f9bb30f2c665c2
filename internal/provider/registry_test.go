package provider_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// sample is an adapter for nobody, whole and valid.
func sample() *provider.Adapter {
	return &provider.Adapter{
		Name: "tally", Title: "Tally",
		Scheme: &signature.Scheme{
			Methods:   []signature.Method{{Algorithm: signature.HMACSHA256, Key: signature.KeyRule{Encoding: signature.Text, BytesMin: 8}}},
			Message:   []signature.Part{signature.RawBody()},
			Signature: signature.Place{Header: "x-tally", Grammar: signature.Plain, Encoding: signature.Hex},
		},
		BodyBytesMax: 1 << 16, ContentTypes: []string{"application/json"}, SuccessCode: 204,
		ID: []provider.Source{
			{Parts: []provider.Place{{Path: "id"}}, Signed: true},
			{Parts: []provider.Place{{Path: "batch"}, {Path: "item"}}, Join: "/", Signed: true},
		},
		Type:    provider.Source{Parts: []provider.Place{{Path: "type"}}, Signed: true},
		Created: []string{"at"}, ObjectID: []string{"object"},
		Covers: provider.Covers{ID: true, Type: true}, BodyVaries: provider.Never,
		Catalogue: map[webhook.EventType]provider.Kind{
			"paid": {
				Name: "payment.succeeded", Object: webhook.Payment, Policy: webhook.Monotonic, State: "succeeded", Credit: 1,
				Read: &provider.Reading{
					ID: []string{"object"}, Amount: []string{"amount"}, Currency: []string{"currency"}, Parent: []string{"order"},
					Sample: []byte(`{"id":"x","type":"x","object":"ob_1","at":0,"amount":100,"currency":"eur"}`),
				},
			},
			"changed": {
				Name: "object.changed", Object: webhook.Object, Policy: webhook.ByVersion,
				Read: &provider.Reading{ID: []string{"object"}, Version: []string{"version"}, Sample: []byte(`{"id":"x","type":"x","object":"ob_1","version":1}`)},
			},
			"moved": {
				Name: "subscription.moved", Object: webhook.Subscription, Policy: webhook.Monotonic,
				Read: &provider.Reading{
					ID: []string{"object"}, Round: []string{"round"}, States: provider.Statuses("status", "on", "active", "off", "paused"),
					Sample: []byte(`{"id":"x","type":"x","object":"ob_1","round":1,"status":"on"}`),
				},
			},
		},
		Redelivery: provider.Redelivery{
			Automatic: "once", AutomaticFor: time.Hour, SameIDOnRetry: provider.Stated, SameIDOnManual: provider.None, Sources: []string{"nowhere"},
		},
		Ordering: "none", Overlap: time.Hour,
	}
}

func TestRegistryFindsAdapters(t *testing.T) {
	t.Parallel()
	a, b := sample(), sample()
	b.Name = "abacus"
	r, err := provider.NewRegistry(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := r.Lookup("tally"); !ok || got != a {
		t.Errorf("found %v, %t", got, ok)
	}
	if got, ok := r.Lookup("nobody"); ok {
		t.Errorf("found %v", got.Name)
	}
	if all := r.All(); len(all) != 2 || all[0] != b || all[1] != a {
		t.Errorf("%d adapters, or in another order", len(all))
	}
}

// Everything that is wrong with every declaration is told at once.
func TestRegistryTellsEverything(t *testing.T) {
	t.Parallel()
	a, b := sample(), sample()
	a.Title, a.BodyBytesMax, a.SuccessCode, a.FormField, a.Overlap, a.Ordering = "", provider.BodyBytesMax+1, 302, "payload", 0, ""
	a.ContentTypes = append(a.ContentTypes, "Application/XML")
	a.Covers = provider.Covers{ID: true, Time: true}
	a.ID[0].Parts[0] = provider.Place{Header: "X-Id"}
	a.BodyVaries = 0
	a.Redelivery = provider.Redelivery{SameIDOnManual: provider.Stated}
	a.Pattern = regexp.MustCompile("x")
	a.Scheme.Signature.Header = ""
	a.Catalogue = map[webhook.EventType]provider.Kind{
		"bad": {Name: "order.paid", Object: webhook.Payment, Policy: "newest", Credit: 2},
		"worse": {
			Name: "object.changed", Object: webhook.Object, Policy: webhook.ByVersion, State: "paid", Credit: 1, Shape: []provider.Check{provider.Has("x")},
			Read: &provider.Reading{Amount: []string{"x"}, Text: true, Decimal: true},
		},
	}
	_, err := provider.NewRegistry(a, b)
	if err == nil {
		t.Fatal("accepted")
	}
	want := []string{
		`provider tally: no title`,
		`provider tally: a body of at most 1048577 bytes, want 1 to 1048576`,
		`provider tally: success code 302`,
		`provider tally: content type "Application/XML" cannot match`,
		`provider tally: a form needs its content type and its field`,
		`provider tally: signature: signature header ""`,
		`provider tally: Covers.Time is not what the scheme signs`,
		`provider tally: header "X-Id" is not lower-case`,
		`provider tally: the id says signed true and is false`,
		`provider tally: Covers.Type differs from the type's source`,
		`provider tally: BodyVaries is not stated`,
		`provider tally: bad: kind "order.paid" is not one of a "payment"`,
		`provider tally: bad: policy "newest"`,
		`provider tally: bad: credit 2`,
		`provider tally: bad: a credit without a state`,
		`provider tally: bad: the type is not signed and the body has no shape`,
		`provider tally: bad: no reading`,
		`provider tally: worse: no object id`,
		`provider tally: worse: no version`,
		`provider tally: worse: an amount and a currency go together`,
		`provider tally: worse: an amount in minor and in major units`,
		`provider tally: worse: no sample`,
		`provider tally: the pattern does not match whole types`,
		`provider tally: pattern: kind "" is not one of a ""`,
		`provider tally: pattern: policy ""`,
		`provider tally: pattern: the type is not signed and the body has no shape`,
		`provider tally: pattern: no reading`,
		`provider tally: no sources of its redelivery facts`,
		`provider tally: automatic retries: how long, and does the id stay?`,
		`provider tally: manual redelivery: how long, and does the id stay?`,
		`provider tally: whether the id stays is not stated`,
		`provider tally: no word on ordering`,
		`provider tally: no overlap for rotation`,
		`provider tally: declared twice`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
		t.Error(diff)
	}
	empty := (&provider.Adapter{}).Validate()
	for _, sentence := range []string{"the name must be", "no signature scheme", "no source of the event id", "the type has no place", "no event types", "no content type"} {
		if !strings.Contains(empty.Error(), sentence) {
			t.Errorf("an empty declaration lacks %q:\n%v", sentence, empty)
		}
	}
}

func TestWindowIsTheLongerWayBack(t *testing.T) {
	t.Parallel()
	for _, r := range []provider.Redelivery{{AutomaticFor: 2, ManualFor: 3}, {AutomaticFor: 3, ManualFor: 2}} {
		if r.Window() != 3 {
			t.Errorf("%+v: %d", r, r.Window())
		}
	}
}

// Where the event id is not signed, a captured body can come again under a fresh
// one, and is known only as long as the first is kept: no kind may add up.
func TestWhatAddsUpNeedsASignedID(t *testing.T) {
	t.Parallel()
	a := &provider.Adapter{Catalogue: map[webhook.EventType]provider.Kind{"sum.changed": {Delta: true}}}
	const sentence = "sum.changed adds up, and the sender does not sign its event id"
	if err := a.Validate(); !strings.Contains(err.Error(), sentence) {
		t.Errorf("unsigned: %v", err)
	}
	a.Covers.ID = true
	if err := a.Validate(); strings.Contains(err.Error(), sentence) {
		t.Errorf("signed: %v", err)
	}
}
