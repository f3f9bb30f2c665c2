package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// At one letter a second a portion judges this many.
const slowPortion = 30

// slowly is a sift of one letter a second.
func slowly() operator.Redrive {
	return operator.Redrive{Queues: only(operator.QueueEvents), Rate: 1, Why: "ticket 7", Prune: true, ReplayFailed: true}
}

// heap makes a world with n dead letters: of five, one is useless, one names a
// FAILED event, and three are to be moved.
func heap(t *testing.T, n int) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := create(t)
	for i := range n {
		row := webhook.Inbox{ID: webhook.InboxID(fmt.Sprintf("in_%04d", i)), Provider: "stripe", Endpoint: "demo", Status: webhook.Received, NextAttemptAt: w.Clock.Add(-time.Hour)}
		switch i % 5 {
		case 1:
			row.Status = webhook.Processed
		case 3:
			row.Status, row.BodyExpiresAt = webhook.Failed, w.Clock.Add(480*time.Hour)
		}
		w.Rows[row.ID] = row
		w.EventLetters.Put("m-"+string(row.ID), wakeOf(t, row.ID), w.Clock.Add(-time.Hour))
	}
	return w, o
}

// toMove are the bodies of the letters of a heap that are to be moved.
func toMove(t *testing.T, n int) []string {
	t.Helper()
	var bodies []string
	for i := range n {
		if i%5 != 1 && i%5 != 3 {
			bodies = append(bodies, wakeOf(t, webhook.InboxID(fmt.Sprintf("in_%04d", i))))
		}
	}
	return bodies
}

// wantSifted fails unless a heap of n was dealt with: every letter that was to be
// moved is back where it came from, once, and every FAILED event was replayed once.
// One run may end between a replay and the removal of its letter, which is then
// moved like the rest: it wakes a worker for an event that waits.
func wantSifted(t *testing.T, name string, w *operatortest.World, n int) {
	t.Helper()
	if left := bodiesOf(w.EventLetters); len(left) != 0 {
		t.Errorf("%s: left: %v", name, left)
	}
	sent := slices.Sorted(slices.Values(w.EventLetters.Sent))
	for i := 3; i < n && len(sent) > len(toMove(t, n)); i += 5 {
		if at := slices.Index(sent, wakeOf(t, webhook.InboxID(fmt.Sprintf("in_%04d", i)))); at >= 0 {
			sent = slices.Delete(sent, at, at+1)
			break
		}
	}
	if diff := cmp.Diff(toMove(t, n), sent); diff != "" {
		t.Errorf("%s: moved (-want +got):\n%s", name, diff)
	}
	replays := 0
	for _, a := range w.Acts {
		if a.Name == "inbox replay" {
			replays++
		}
	}
	if replays != n/5 {
		t.Errorf("%s: %d replays, want %d", name, replays, n/5)
	}
}

// calls runs do before each call of the world.
func calls(w *operatortest.World, do func(call string)) {
	w.Fail = func(call string) error {
		do(call)
		return nil
	}
}

func hiddenOf(t *testing.T, q operator.DeadLetters) int {
	t.Helper()
	d, err := q.Depth(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return d.Hidden
}

// Proves R3: a sift judges each letter once and then ends, in whatever order the
// queue hands letters out that were given back. It receives none more than three
// times on average. On a queue that hands those out last, a portion hides its own
// letters; the last one makes sure that there are no others.
func TestASiftMeetsEachLetterOnceWhateverTheOrder(t *testing.T) {
	t.Parallel()
	const n = 200
	chance := rand.New(rand.NewPCG(7, 7))
	for name, tt := range map[string]struct {
		order  func([]webhook.Letter)
		hidden []int         // when each portion ends, if that is known
		slow   time.Duration // how much longer the wait after a removal lasts
	}{
		"given back first": {nil, []int{18, 36, 58, 92, 120}, 0},
		"given back last": {func(letters []webhook.Letter) {
			slices.SortStableFunc(letters, func(a, b webhook.Letter) int { return a.Receives - b.Receives })
		}, []int{18, 18, 18, 18, 18, 18, 120}, 0},
		"by chance": {func(letters []webhook.Letter) {
			chance.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
		}, nil, 0},
		// The first letters of a portion are shown before it ends.
		"portions that outlast their time": {nil, nil, 19 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o := heap(t, n)
			w.EventLetters.Order = tt.order
			wait := o.Wait
			o.Wait = func(ctx context.Context, d time.Duration) error {
				w.Advance(tt.slow)
				return wait(ctx, d)
			}
			p, err := o.PlanRedrive(t.Context(), slowly())
			if err != nil {
				t.Fatal(err)
			}
			receives, judged := 0, 0
			var hidden []int
			calls(w, func(call string) {
				switch call {
				case "Receive":
					receives++
				case "GiveBack":
					hidden = append(hidden, hiddenOf(t, o.EventDeadLetters))
				}
			})
			got, err := o.Redrive(t.Context(), p, func(d operator.Redriven) { judged = max(judged, d.Judged) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(operator.Redriven{Replayed: n / 5, Removed: 2 * n / 5, Moved: 3 * n / 5}, got); diff != "" || judged != n {
				t.Errorf("%d judged; done (-want +got):\n%s", judged, diff)
			}
			wantSifted(t, name, w, n)
			if diff := cmp.Diff(tt.hidden, hidden); diff != "" && tt.hidden != nil {
				t.Errorf("hidden as each portion ends (-want +got):\n%s", diff)
			}
			if most := 3 * n / 2; tt.slow == 0 && receives > most {
				t.Errorf("%d receives of two letters, want %d at most", receives, most)
			}
		})
	}
}

// Proves R3, T5: a sift that is interrupted before or after any of its calls shows
// at once what it held, with its caller gone, and has done nothing by halves: the
// same command does the rest, and nothing twice.
func TestASiftThatIsInterruptedAnywhereHidesNothing(t *testing.T) {
	t.Parallel()
	for after, least := range map[bool]int{false: 150, true: 60} {
		n := 1
		for interruptedAt(t, n, after) {
			n++
		}
		if n < least {
			t.Errorf("after %v: only %d calls were met", after, n)
		}
	}
}

func interruptedAt(t *testing.T, n int, after bool) bool {
	t.Helper()
	const letters = 45 // a portion and a half
	w, o := heap(t, letters)
	p, err := o.PlanRedrive(t.Context(), slowly())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	count := func(string) error {
		if seen++; seen == n {
			cancel()
		}
		return nil
	}
	if after {
		w.Lose = count
	} else {
		w.Fail = count
	}
	got, err := o.Redrive(ctx, p, unheard)
	if ctx.Err() == nil {
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	name := fmt.Sprintf("call %d, after %v", n, after)
	alive(w)
	if hidden := hiddenOf(t, o.EventDeadLetters); hidden != 0 {
		t.Errorf("%s: %d letters are hidden", name, hidden)
	}
	if err == nil { // it was told too late
		wantSifted(t, name, w, letters)
		return true
	}
	if r := wantRefusal(t, err, "interrupted"); !strings.Contains(r.Problem, fmt.Sprintf("after %d replayed, %d deleted,", got.Replayed, got.Removed)) {
		t.Errorf("%s: %q tells nothing of %+v", name, r.Problem, got)
	}
	if _, err := redrive(t, o, slowly()); err != nil {
		t.Fatal(err)
	}
	wantSifted(t, name, w, letters)
	return true
}

// Proves R3, T5: a sift that is killed, or cut off while it receives, hides letters
// for two minutes and no longer, and the same command does the rest.
func TestASiftThatIsKilledAnywhereHidesLettersForTwoMinutes(t *testing.T) {
	t.Parallel()
	for after, least := range map[bool]int{false: 150, true: 100} {
		n, hid := 1, 0
		for {
			hidden, reached := killedAt(t, n, after)
			if !reached {
				break
			}
			hid = max(hid, hidden)
			n++
		}
		if most := slowPortion + 1; n < least || hid < slowPortion/2 || hid > most {
			t.Errorf("after %v: %d calls were met; %d letters stayed hidden at most, want no more than %d", after, n, hid, most)
		}
	}
}

func killedAt(t *testing.T, n int, after bool) (hidden int, reached bool) {
	t.Helper()
	const letters = 45
	w, o := heap(t, letters)
	w.EventLetters.Order = func(letters []webhook.Letter) {
		slices.SortStableFunc(letters, func(a, b webhook.Letter) int { return a.Receives - b.Receives })
	}
	p, err := o.PlanRedrive(t.Context(), slowly())
	if err != nil {
		t.Fatal(err)
	}
	dead := dying(w, n, after)
	_, err = o.Redrive(t.Context(), p, unheard)
	alive(w)
	if !dead() {
		if err != nil {
			t.Fatal(err)
		}
		return 0, false
	}
	name := fmt.Sprintf("call %d, after %v", n, after)
	hidden = hiddenOf(t, o.EventDeadLetters)
	w.Advance(2 * time.Minute)
	if still := hiddenOf(t, o.EventDeadLetters); still != 0 {
		t.Errorf("%s: %d letters are still hidden", name, still)
	}
	if _, err := redrive(t, o, slowly()); err != nil {
		t.Fatal(err)
	}
	wantSifted(t, name, w, letters)
	return hidden, true
}

// Proves R3: of two redrives side by side each letter is dealt with by one, and the
// one that is behind brings back what it held when the other's move began.
func TestTwoRedrivesSideBySideDoEachThingOnce(t *testing.T) {
	t.Parallel()
	const n = 45
	for name, rival := range map[string]func(*testing.T, *operator.Operator) operator.Redriven{
		"a whole redrive": func(t *testing.T, o *operator.Operator) operator.Redriven {
			t.Helper()
			done, err := redrive(t, o, slowly())
			if err != nil {
				t.Error(err)
			}
			return done
		},
		"a move that goes on": func(t *testing.T, o *operator.Operator) operator.Redriven {
			t.Helper()
			if err := o.EventDeadLetters.Move(t.Context(), 1); err != nil {
				t.Error(err)
			}
			return operator.Redriven{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			met := 0
			for at := 1; ; at++ {
				w, o := heap(t, n)
				p, err := o.PlanRedrive(t.Context(), slowly())
				if err != nil {
					t.Fatal(err)
				}
				var other operator.Redriven
				seen, begun := 0, false
				calls(w, func(call string) {
					if call != "Receive" && call != "Move" && call != "GiveBack" && call != "Remove" || begun {
						return
					}
					if seen++; seen == at {
						begun = true
						other = rival(t, w.Operator())
					}
				})
				got, err := o.Redrive(t.Context(), p, unheard)
				if err != nil {
					t.Fatalf("%s at %d: %v", name, at, err)
				}
				if !begun {
					break
				}
				met++
				if left := bodiesOf(w.EventLetters); len(left) != 0 {
					t.Errorf("%s at %d: left: %v", name, at, left)
				}
				if removed := got.Removed + other.Removed; name == "a whole redrive" && (removed != 2*n/5 || got.Replayed+other.Replayed != n/5) {
					t.Errorf("%s at %d: %+v and %+v; want %d removed and %d replayed", name, at, got, other, 2*n/5, n/5)
				}
				if name == "a whole redrive" {
					wantSifted(t, fmt.Sprint(name, " at ", at), w, n)
				}
			}
			if met < 40 {
				t.Errorf("the rival came at %d calls only", met)
			}
		})
	}
}

// lagging is a queue that tells of what it held before its letters were given back.
type lagging struct{ operator.DeadLetters }

func (lagging) Depth(context.Context) (webhook.Depth, error) { return webhook.Depth{Hidden: 5}, nil }

// Proves R3: what a sift left is moved although the queue's depth, which may lag by
// a minute, does not tell of it yet.
func TestWhatASiftLeftIsMovedWhateverTheDepthSays(t *testing.T) {
	t.Parallel()
	w, o := heap(t, 5)
	o.EventDeadLetters = lagging{o.EventDeadLetters}
	got, err := o.Redrive(t.Context(), operator.RedrivePlan{Redrive: slowly()}, unheard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Replayed: 1, Removed: 2, Moved: 3}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	wantSifted(t, "done", w, 5)
}

// What is told while a sift goes on counts up to what was there, and to what is
// returned.
func TestASiftTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	w, o := heap(t, 10)
	w.Rows["in_0003"] = webhook.Inbox{ID: "in_0003", Provider: "stripe", Endpoint: "demo", Status: webhook.Failed} // without a body
	p, err := o.PlanRedrive(t.Context(), slowly())
	if err != nil {
		t.Fatal(err)
	}
	var told []operator.Redriven
	got, err := o.Redrive(t.Context(), p, func(d operator.Redriven) { told = append(told, d) })
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{"body_gone": 1}
	want := []operator.Redriven{
		{Judged: 2, Removed: 1}, {Judged: 2, Removed: 1}, // as one goes, and after each two
		{Judged: 4, Removed: 1, Left: left},
		{Judged: 6, Removed: 1, Left: left},
		{Judged: 7, Removed: 2, Left: left}, {Judged: 8, Removed: 2, Left: left},
		{Judged: 9, Replayed: 1, Removed: 3, Left: left}, {Judged: 10, Replayed: 1, Removed: 3, Left: left},
	}
	for moved := range 8 {
		want = append(want, operator.Redriven{Replayed: 1, Removed: 3, Left: left, Moved: min(moved+1, 7)})
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(told[len(told)-1], got); diff != "" {
		t.Errorf("done (-told last +returned):\n%s", diff)
	}
}

// flood is a queue whose letters never end, or that hands out the same ones for ever.
type flood struct {
	operator.DeadLetters

	same               bool
	body               string
	drawn, most, moves int
	out                map[string]bool
}

func (f *flood) Receive(context.Context, time.Duration) ([]webhook.Letter, error) {
	some := make([]webhook.Letter, 10)
	for i := range some {
		id := f.drawn + i
		if f.same {
			id = i
		}
		some[i] = webhook.Letter{ID: fmt.Sprint("m-", id), Handle: fmt.Sprint("h-", f.drawn+i), Body: f.body}
		f.out[some[i].ID] = true
	}
	f.drawn += len(some)
	f.most = max(f.most, len(f.out))
	return some, nil
}

func (f *flood) GiveBack(_ context.Context, some []webhook.Letter) error {
	for _, l := range some {
		delete(f.out, l.ID)
	}
	if slices.ContainsFunc(some, func(l webhook.Letter) bool { return l.Body != "" }) {
		return errors.New("a body was kept")
	}
	return nil
}

func (f *flood) Move(context.Context, int) error { f.moves++; return nil }

func (f *flood) LastMove(context.Context) (webhook.Move, bool, error) {
	return webhook.Move{}, f.moves > 0, nil
}

// A sift ends, and holds no more than a portion of ids and handles, whatever the
// queue does.
func TestASiftEndsOnAQueueThatNeverDoes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		queue       flood
		drawn, most int
	}{
		"ever new letters": {flood{body: "hello", out: map[string]bool{}}, operator.LettersMax, 500},
		// Twice in the first portion, and in the second.
		"ever the same": {flood{body: "hello", out: map[string]bool{}, same: true}, 40, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, o := create(t)
			q := tt.queue
			o.EventDeadLetters = &q
			r := slowly()
			r.Rate = 50
			if _, err := o.Redrive(t.Context(), operator.RedrivePlan{Redrive: r}, unheard); err != nil {
				t.Fatal(err)
			}
			if q.drawn != tt.drawn || q.most != tt.most || q.moves != 1 {
				t.Errorf("%d letters were received, %d at once, and %d moves begun; want %d, %d and 1", q.drawn, q.most, q.moves, tt.drawn, tt.most)
			}
		})
	}
}
