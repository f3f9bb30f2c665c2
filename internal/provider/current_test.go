package provider_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Proves O3: a fetched object says by itself what it has become, whatever the
// event said, by the paths of an event's body.
func TestAFetchedObjectSaysWhatItHasBecome(t *testing.T) {
	a := asked()
	for _, tt := range []struct {
		eventType webhook.EventType
		answer    string
		want      webhook.Facts
	}{
		{
			"moved", `{"subscription":{"object":"sub_1","round":3,"status":"off","changed":"2026-03-01T13:00:00+01:00"}}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_1", Version: 3, HasVersion: true, State: "paused", UpdatedAt: at(1772366400)},
		},
		// The event said paid; by now, or still, the object says otherwise.
		{
			"paid", `{"object":"pay_1","status":"new","amount":100,"received":0,"currency":"eur"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pay_1", State: "created", Amount: 100, Currency: "EUR"},
		},
		{
			"paid", `{"object":"pay_1","status":"done","amount":100,"received":70,"currency":"eur","order":"ord_1"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pay_1", State: "succeeded", Amount: 70, Currency: "EUR", Credit: 1, ParentID: "ord_1"},
		},
	} {
		got, err := a.CurrentFacts(a.Catalogue[tt.eventType], tt.eventType, []byte(tt.answer))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.answer, err, diff)
		}
		id, err := a.CurrentObject(a.Catalogue[tt.eventType], []byte(tt.answer))
		if err != nil || id != tt.want.ObjectID {
			t.Errorf("%s: object %q, %v", tt.answer, id, err)
		}
	}
}

// An answer is read as strictly as a body. It is their fault, and another one may
// be better.
func TestAnAnswerThatIsNone(t *testing.T) {
	a := asked()
	for _, tt := range []struct {
		eventType    webhook.EventType
		answer, want string
	}{
		{"moved", ``, "theirs answer_body_malformed"},
		{"moved", `<html>busy</html>`, "theirs answer_body_malformed"},
		{"moved", `[]`, "theirs answer_body_malformed"},
		{"moved", `{}`, "theirs answer_body_unexpected"},
		{"moved", `{"subscription":null}`, "theirs answer_body_unexpected"},
		{"moved", `{"subscription":7}`, "theirs answer_body_malformed"},
		{"moved", `{"subscription":{"status":"on"}}`, "theirs answer_object_id_missing"},
		{"moved", `{"subscription":{"object":"sub_1","status":"dreaming"}}`, "theirs answer_state_unknown"},
		{"moved", `{"subscription":{"object":"sub_1","object":"sub_2","status":"on"}}`, "theirs answer_body_ambiguous"},
		{"moved", `{"subscription":{"object":"sub_1","Object":"sub_2","status":"on"}}`, "theirs answer_body_ambiguous"},
		{"moved", `{"subscription":{"object":"sub_1","status":"on"}} {}`, "theirs answer_body_malformed"},
		{"moved", `{"subscription":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "theirs answer_body_too_deep"},
		{"paid", `{"object":"pay_1","status":"done","amount":1}`, "theirs answer_amount_missing"},
		{"paid", `{"object":"pay_1","status":"done","received":1.5,"currency":"eur"}`, "theirs answer_amount_invalid"},
		{"paid", strings.Repeat("[", 100) + strings.Repeat("]", 100), "theirs answer_body_too_deep"},
		{"changed", `{}`, "permanent kind_not_fetchable"},
	} {
		if got, err := a.CurrentFacts(a.Catalogue[tt.eventType], tt.eventType, []byte(tt.answer)); problem(err) != tt.want || got != (webhook.Facts{}) {
			t.Errorf("%.60s: %s, want %s", tt.answer, problem(err), tt.want)
		}
	}
	if _, err := a.CurrentFacts(a.Catalogue["moved"], "paid", []byte(`{}`)); problem(err) != "permanent kind_unknown" {
		t.Errorf("another type's kind: %s", problem(err))
	}
}

// An answer that is put into something larger cannot break out of it.
func TestAnAnswerStaysInItsPlace(t *testing.T) {
	a := asked()
	k := a.Catalogue["paid"]
	inner := *k.Current
	inner.At = "data.object"
	inner.Read = &provider.Reading{ID: []string{"data.object.id"}, States: provider.Statuses("data.object.status", "new", "created")}
	k.Current = &inner
	a.Catalogue["paid"] = k

	want := webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pay_1", State: "created"}
	got, err := a.CurrentFacts(k, "paid", []byte(`{"id":"pay_1","status":"new"}`))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, answer := range []string{
		`{"id":"pay_1","status":"new"}},"more":{"x":{}`,
		`{"id":"pay_1","status":"new"},"object":{}`,
		`1`, `null`, `{"id":"pay_1","status":"new"},`,
	} {
		if _, err := a.CurrentFacts(k, "paid", []byte(answer)); err == nil {
			t.Errorf("%s was taken", answer)
		}
	}
}

// What an answer says of an object that is not there differs among senders.
func TestAnObjectThatIsNotThere(t *testing.T) {
	a := asked()
	for _, tt := range []struct {
		status int
		answer string
		want   bool
	}{
		{404, ``, true}, {410, `<html>`, true}, {400, `{"error":{"code":"none"}}`, true},
		{400, `{"error":{"code":"busy"}}`, false}, {400, `not JSON`, false}, {200, `{"error":{"code":"none"}}`, false}, {500, ``, false}, {403, ``, false},
	} {
		if got := a.Missing(tt.status, []byte(tt.answer)); got != tt.want {
			t.Errorf("%d %s: %t", tt.status, tt.answer, got)
		}
	}
}
