package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// since is from when on the tests list.
func since() time.Time { return at(1772366400) } // 2026-03-01T12:00:00Z

// Every cursor leads to one address, the same whenever it is asked for: a walk
// that was broken off goes on where it was.
func TestACursorLeadsToOneAddress(t *testing.T) {
	a := asked()
	for cursor, want := range map[string]string{
		"":         "https://corner.tally.example/api/v1/events?from=1772366400&limit=2",
		"0.evt_2":  "https://corner.tally.example/api/v1/events?after=evt_2&from=1772366400&limit=2",
		"1.":       "https://corner.tally.example/api/v1/ledgers/main/deliveries",
		"1.a+b/c=": "https://corner.tally.example/api/v1/ledgers/main/deliveries?cursor=a%2Bb%2Fc%3D",
		"1.x&y=z":  "https://corner.tally.example/api/v1/ledgers/main/deliveries?cursor=x%26y%3Dz",
		"2.":       "https://corner.tally.example/api/v1/objects?kind=any&since=2026-03-01T12%3A00%3A00Z",
		"2.4":      "https://corner.tally.example/api/v1/objects?limit=2&skip=4",
	} {
		c, err := a.HistoryCall(shop(), since(), cursor)
		if diff := cmp.Diff(want, c.URL("")); err != nil || diff != "" {
			t.Errorf("cursor %q: %v\n%s", cursor, err, diff)
		}
	}
	c, err := a.HistoryCall(shop(), time.Time{}, "")
	if want := "https://corner.tally.example/api/v1/events?limit=2"; err != nil || c.URL("") != want {
		t.Errorf("from the beginning: %s, %v", c.URL(""), err)
	}
	for _, cursor := range []string{"3.", "-1.", "x.", ".", "0", "0.a b", "0.a\nb", "0." + strings.Repeat("a", 2000)} {
		if _, err := a.HistoryCall(shop(), since(), cursor); problem(err) != "permanent cursor_invalid" {
			t.Errorf("cursor %.20q: %s", cursor, problem(err))
		}
	}
	if _, err := sample().HistoryCall(shop(), since(), ""); problem(err) != "permanent history_unsupported" {
		t.Error(problem(err))
	}
}

// Events are listed whole: each is what the front door would have read.
func TestEventsOfAList(t *testing.T) {
	body := `{"id":"evt_1","type":"paid","object":"pay_1","at":1772366460,"amount":1,"currency":"eur"}`
	reply := provider.Reply{Body: []byte(`{"more":true,"events":[` + body + `,{"type":"paid","at":1772366461},{"id":"evt_2","type":"paid"},{"id":"evt_3","type":"unknown","at":1772366400}]}`)}
	// Times are in whole seconds: what began within the asked one is not lost.
	got, err := asked().ReadHistory(shop(), since().Add(900*time.Millisecond), "", reply)
	want := provider.Page{
		Items: []provider.Past{
			{EventID: "evt_1", Type: "paid", At: at(1772366460), Body: []byte(body)},
			{EventID: "evt_3", Type: "unknown", At: at(1772366400), Body: []byte(`{"id":"evt_3","type":"unknown","at":1772366400}`)},
		},
		Next: "0.evt_3", Unreadable: 2,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	elsewhere := asked()
	elsewhere.API.Histories[0].Cursor.ID = "object"
	got, err = elsewhere.ReadHistory(shop(), since(), "", provider.Reply{Body: []byte(`{"more":true,"events":[` + body + `]}`)})
	if err != nil || got.Next != "0.pay_1" {
		t.Errorf("an id that stands elsewhere leads to %q, %v", got.Next, err)
	}
	large := `{"id":"evt_4","type":"paid","at":1772366460,"note":"` + strings.Repeat("a", asked().BodyBytesMax) + `"}`
	got, err = asked().ReadHistory(shop(), since(), "", provider.Reply{Body: []byte(`{"more":false,"events":[` + large + `]}`)})
	if diff := cmp.Diff(provider.Page{Next: "1.", Unreadable: 1}, got); err != nil || diff != "" {
		t.Errorf("more than the front door takes: %v\n%s", err, diff)
	}
	got, err = asked().ReadHistory(shop(), since(), "0.evt_3", provider.Reply{Body: []byte(`{"more":false,"events":[]}`)})
	if diff := cmp.Diff(provider.Page{Next: "1."}, got); err != nil || diff != "" {
		t.Errorf("the last page: %v\n%s", err, diff)
	}
}

// Deliveries are listed without content; the first one before the asked time ends
// the list, whatever the answer's header says.
func TestDeliveriesOfAList(t *testing.T) {
	next := http.Header{"Link": {`<https://evil.example/x?cursor=first>; rel="first", <https://evil.example/y?cursor=n%2B1&x=1>; rel="next"`}}
	reply := provider.Reply{Header: next, Body: []byte(`[
		{"guid":"g-3","event":"paid","action":null,"number":9007199254740993,"status":202,"sent":"2026-03-01T12:00:03.5Z"},
		{"guid":"g-2","event":"moved","action":"on","number":2,"status":502,"sent":"2026-03-01T12:00:02Z"},
		{"guid":"g 1","event":"moved","number":1,"status":200,"sent":"2026-03-01T12:00:01Z"},
		{"guid":"g-0","event":"m o","number":1,"status":200,"sent":"2026-03-01T12:00:01Z"},
		{"guid":"g-9","number":1,"status":200,"sent":"2026-03-01T12:00:01Z"}]`)}
	got, err := asked().ReadHistory(shop(), since(), "1.", reply)
	want := provider.Page{
		Items: []provider.Past{
			{EventID: "g-3", Type: "paid", At: at(1772366403).Add(500 * time.Millisecond), Delivery: "9007199254740993", Delivered: true},
			{EventID: "g-2", Type: "moved.on", At: at(1772366402), Delivery: "2"},
		},
		Next: "1.n+1", Unreadable: 3,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	reply.Body = []byte(`[{"guid":"g-1","event":"paid","status":200,"sent":"2026-03-01T11:59:59Z"}]`)
	got, err = asked().ReadHistory(shop(), since(), "1.", reply)
	if diff := cmp.Diff(provider.Page{Next: "2."}, got); err != nil || diff != "" {
		t.Errorf("before the asked time: %v\n%s", err, diff)
	}
}

// Objects are made into events. The same state of an object is the same event,
// whenever and in whatever time zone it is listed.
func TestObjectsOfAList(t *testing.T) {
	a := asked()
	a.ID = append(a.ID, provider.Source{Parts: []provider.Place{{Header: "x-id"}}})
	list := func(items string) provider.Page {
		t.Helper()
		page, err := a.ReadHistory(shop(), since(), "2.", provider.Reply{Body: []byte(`{"page":{"objects":[` + items + `]}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	got := list(`{"id":"sub_1","status":"on","changed":"2026-03-01T12:00:05Z"},{"id":"sub_2","status":"off","changed":"2026-03-01T12:00:06Z"}`)
	want := provider.Page{
		Items: []provider.Past{{
			EventID: "backfill-sub_1-1772366405", Type: "moved", At: at(1772366405), Made: true,
			Header: signature.Header{"x-id": "backfill-sub_1-1772366405"},
			Body:   []byte(`{"type":"moved","at":1772366405,"body":{"object":{"id":"sub_1","status":"on","changed":"2026-03-01T12:00:05Z"}}}`),
		}},
		Next: "2.2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	elsewhere := list(`{"id":"sub_1","status":"on","changed":"2026-03-01T17:30:05+05:30"}`)
	if len(elsewhere.Items) != 1 || elsewhere.Items[0].EventID != want.Items[0].EventID || elsewhere.Next != "" {
		t.Errorf("in another time zone: %+v", elsewhere)
	}
	for _, item := range []string{
		`{"status":"on","changed":"2026-03-01T12:00:05Z"}`, `{"id":"a b","status":"on","changed":"2026-03-01T12:00:05Z"}`,
		`{"id":"a|b","status":"on","changed":"2026-03-01T12:00:05Z"}`, `{"id":{},"status":"on","changed":"2026-03-01T12:00:05Z"}`, `7`,
		`{"id":"` + strings.Repeat("a", 300) + `","status":"on","changed":"2026-03-01T12:00:05Z"}`,
	} {
		if got := list(item); len(got.Items) != 0 || got.Unreadable != 1 {
			t.Errorf("%.40s: %+v", item, got)
		}
	}
}

// A list that cannot be read, or that would be walked for ever, is their fault.
func TestAListThatIsNone(t *testing.T) {
	endless := strings.TrimSuffix(strings.Repeat("{},", 1001), ",")
	for _, tt := range []struct{ cursor, link, answer, want string }{
		{"", "", ``, "theirs answer_body_malformed"},
		{"", "", `[]`, "theirs answer_body_malformed"},
		{"", "", `{}`, "theirs answer_body_unexpected"},
		{"", "", `{"events":{}}`, "theirs answer_body_unexpected"},
		{"", "", `{"events":[],"events":[]}`, "theirs answer_body_ambiguous"},
		{"", "", `{"events":[` + endless + `]}`, "theirs answer_body_unexpected"},
		{"", "", `{"more":true,"events":[]}`, "theirs answer_cursor_missing"},
		{"", "", `{"more":true,"events":[{"type":"paid"}]}`, "theirs answer_cursor_missing"},
		{"0.evt_1", "", `{"more":true,"events":[{"id":"evt_1"}]}`, "theirs answer_cursor_stuck"},
		{"", "", `{"more":true,"events":[{"id":"evt 1"}]}`, "theirs answer_cursor_stuck"},
		{"1.", "", `{}`, "theirs answer_body_unexpected"},
		{"1.", "", `[],"x":[]`, "theirs answer_body_malformed"},
		{"1.", "", `]`, "theirs answer_body_malformed"},
		{"1.n", `<https://a.example/?cursor=n>; rel=next`, `[]`, "theirs answer_cursor_stuck"},
		{"1.n", `<https://a.example/?cursor=%0a>; rel=next`, `[]`, "theirs answer_cursor_stuck"},
		{"2.", "", `{"page":[]}`, "theirs answer_body_unexpected"},
	} {
		_, err := asked().ReadHistory(shop(), since(), tt.cursor, provider.Reply{Header: http.Header{"Link": {tt.link}}, Body: []byte(tt.answer)})
		if problem(err) != tt.want {
			t.Errorf("%s %.50s: %s, want %s", tt.cursor, tt.answer, problem(err), tt.want)
		}
	}
}
