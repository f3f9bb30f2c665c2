package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

type ctx = context.Context

// received adds an event that a key signed.
func received(w *operatortest.World, id webhook.InboxID, v webhook.KeyVersion, ago time.Duration) {
	w.Rows[id] = webhook.Inbox{
		ID: id, Endpoint: "demo", Provider: "stripe", MatchedVersion: v, ReceivedAt: w.Clock.Add(-ago), Status: webhook.Processed,
	}
}

// Proves S4: matches and last use are visible per version.
func TestKeysShowTheirMatches(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	added := rotate(t, o, second).Version
	received(w, "in_1", old, 3*time.Hour)
	received(w, "in_2", old, 2*time.Hour)
	received(w, "in_3", added, time.Hour)
	received(w, "in_4", old, 8*24*time.Hour) // too long ago to count
	received(w, "in_5", added, 0)            // the stack's own: not its provider's use of the key
	canary := w.Rows["in_5"]
	canary.EventType, canary.Unwanted = webhook.CanaryType, true
	w.Rows["in_5"] = canary

	keys, err := o.Keys(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	type use struct {
		Version webhook.KeyVersion
		Matches int
		Last    time.Time
	}
	var got []use
	for _, k := range keys {
		got = append(got, use{k.Version, k.Matches, k.LastMatch})
	}
	want := []use{{added, 1, w.Clock.Add(-time.Hour)}, {old, 2, w.Clock.Add(-2 * time.Hour)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

// Proves S4: a planned retirement is refused while anything speaks against it.
func TestAPlannedRetirementIsRefusedWhileTheKeyIsInUse(t *testing.T) {
	t.Parallel()
	const onlyKey = "it is the only trusted key: every request will be refused until another is put"
	tests := []struct {
		name   string
		before func(t *testing.T, w *operatortest.World, o *operator.Operator)
		want   func(w *operatortest.World) []string
	}{
		{"that it is the only key", func(*testing.T, *operatortest.World, *operator.Operator) {},
			func(*operatortest.World) []string { return []string{onlyKey} }},
		{"that it signed the newest event", func(t *testing.T, w *operatortest.World, o *operator.Operator) {
			added := rotate(t, o, second).Version
			matched(t, w, added)
			received(w, "in_1", added, time.Hour)
			received(w, "in_2", "k1-", 0)
			received(w, "in_3", w.Endpoints["demo"].Keys[1].Version, 3*time.Minute)
		}, func(*operatortest.World) []string {
			return []string{"the newest event, received 3m0s ago, was signed with it"}
		}},
		{"that the newer one has not matched", func(t *testing.T, _ *operatortest.World, o *operator.Operator) {
			rotateTo(t, o, second)
		}, func(w *operatortest.World) []string {
			return []string{"the newest key, " + string(w.Endpoints["demo"].Keys[0].Version) + ", has not matched yet: the provider may not sign with it"}
		}},
		{"of nothing after a rotation that went through", func(t *testing.T, w *operatortest.World, o *operator.Operator) {
			added := rotate(t, o, second).Version
			matched(t, w, added)
			received(w, "in_1", w.Endpoints["demo"].Keys[1].Version, time.Hour)
			received(w, "in_2", added, time.Minute)
		}, func(*operatortest.World) []string { return nil }},
		{"that the inbox cannot be read", func(_ *testing.T, w *operatortest.World, _ *operator.Operator) {
			w.Fail = operatortest.Down("RecentInbox")
		}, func(*operatortest.World) []string {
			return []string{"the inbox cannot be read, so it is not known what still signs with this key", onlyKey}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := create(t)
			old := w.Endpoints["demo"].Keys[0].Version
			tt.before(t, w, o)
			plan, err := o.PlanRetire(t.Context(), "demo", string(old), false)
			want := operator.Retirement{Endpoint: "demo", Version: old, Warnings: tt.want(w)}
			if len(want.Warnings) > 0 {
				wantRefusal(t, err, "still_in_use")
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, plan); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if w.Endpoints["demo"].Trusts(old, w.Clock) == false {
				t.Error("planning ended the trust")
			}
		})
	}
}

// Proves S4: trust ends whatever the secret store's state.
func TestRetireEndsTrustWithTheSecretStoreDown(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	down := true
	w.Fail = func(call string) error {
		if down && (call == "Retire" || call == "Value" || call == "Put") {
			return operatortest.ErrDown
		}
		return nil
	}
	done, err := o.Retire(t.Context(), "demo", old, "leaked")
	if err != nil {
		t.Fatal(err)
	}
	if want := (operator.Retirement{Endpoint: "demo", Version: old, LabelKept: true}); !cmp.Equal(want, done) {
		t.Errorf("got %+v, want %+v", done, want)
	}
	if w.Endpoints["demo"].Trusts(old, w.Clock) {
		t.Error("the key is trusted still")
	}
	last := w.Acts[len(w.Acts)-1]
	want := webhook.Act{ID: "act-2", At: w.Clock, Name: "secret retire", Subject: "endpoint demo version " + string(old), Who: "ada", Why: "leaked"}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("act (-want +got):\n%s", diff)
	}

	down = false
	done, err = o.Retire(t.Context(), "demo", old, "leaked")
	if want := (operator.Retirement{Endpoint: "demo", Version: old, Existed: true}); err != nil || !cmp.Equal(want, done) {
		t.Errorf("again: got %+v and error %v, want %+v", done, err, want)
	}
	if len(w.Acts) != 2 {
		t.Errorf("%d acts, want 2: repeating it is no new act", len(w.Acts))
	}
}

func TestRetireTakesABeginningThatIsUnique(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	rotateTo(t, o, second)
	old := w.Endpoints["demo"].Keys[1].Version
	tests := []struct {
		name, version, code string
		want                webhook.KeyVersion
	}{
		{"a whole id", string(old), "", old},
		{"a beginning", "k1-", "", old},
		{"a beginning of two", "k", "version_ambiguous", ""},
		{"nothing", "", "version_unknown", ""},
		{"what is not there", "k9", "version_unknown", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan, err := o.PlanRetire(t.Context(), "demo", tt.version, true)
			if tt.code != "" {
				wantRefusal(t, err, tt.code)
			} else if err != nil || plan.Version != tt.want {
				t.Errorf("version %s and error %v, want %s", plan.Version, err, tt.want)
			}
		})
	}
}

func TestRetireRefusesAVersionThatNobodyKnows(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	_, err := o.Retire(t.Context(), "demo", "k9-nothing", "")
	wantRefusal(t, err, "version_unknown")
	if len(w.Acts) != 1 {
		t.Error("an act was recorded that was none")
	}
}

// Proves S4: an emergency waits for nothing, not even for the inbox.
func TestAnEmergencyIsNotRefused(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	received(w, "in_1", old, time.Second)
	w.Fail = operatortest.Down("RecentInbox")
	plan, err := o.PlanRetire(t.Context(), "demo", "k1", true)
	want := operator.Retirement{Endpoint: "demo", Version: old, Warnings: []string{"it is the only trusted key: every request will be refused until another is put"}}
	if diff := cmp.Diff(want, plan); diff != "" || err != nil {
		t.Errorf("error %v; plan (-want +got):\n%s", err, diff)
	}
}

// Proves S2: a rotation is finished once the newer key was seen to match.
func TestFinishEndsTheOverlapOfWhatTheNewestKeyFollows(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	none, err := o.PlanFinish(t.Context(), "demo")
	if want := (operator.Finished{Endpoint: "demo", Newest: old, Existed: true}); err != nil || !cmp.Equal(want, none) {
		t.Errorf("with one key: %+v, error %v; want %+v", none, err, want)
	}
	added := rotate(t, o, second).Version
	for _, plan := range []func() error{
		func() error { _, err := o.PlanFinish(t.Context(), "demo"); return err },
		func() error { _, err := o.Finish(t.Context(), "demo", ""); return err },
	} {
		wantRefusal(t, plan(), "not_matched")
	}
	matched(t, w, added)
	w.Advance(time.Hour)
	received(w, "in_1", old, time.Minute)
	want := operator.Finished{Endpoint: "demo", Newest: added, Ended: []webhook.KeyVersion{old}}
	warned := want
	warned.Warnings = []string{"an event received 1m0s ago was signed with " + string(old) + ", after the newest key first matched"}
	plan, err := o.PlanFinish(t.Context(), "demo")
	if diff := cmp.Diff(warned, plan); diff != "" || err != nil {
		t.Errorf("error %v; plan (-want +got):\n%s", err, diff)
	}
	done, err := o.Finish(t.Context(), "demo", "yearly")
	if diff := cmp.Diff(want, done); diff != "" || err != nil {
		t.Errorf("error %v; finished (-want +got):\n%s", err, diff)
	}
	e := w.Endpoints["demo"]
	if e.Trusts(old, w.Clock) || !e.Trusts(added, w.Clock) || len(e.Keys) != 2 {
		t.Errorf("trusted: %v of %d listed, want the newest of 2", e.Trusted(w.Clock), len(e.Keys))
	}
	acts := len(w.Acts)
	want.Existed, want.Ended = true, nil
	again, err := o.Finish(t.Context(), "demo", "yearly")
	if diff := cmp.Diff(want, again); diff != "" || err != nil || len(w.Acts) != acts {
		t.Errorf("again: error %v, %d acts more; finished (-want +got):\n%s", err, len(w.Acts)-acts, diff)
	}
	retireAll(t, w, o)
	_, err = o.PlanFinish(t.Context(), "demo")
	wantRefusal(t, err, "no_key_trusted")
}
