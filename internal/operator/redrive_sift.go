package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// portionMax is the most letters that a portion judges, where the queue shows it
// none that were judged before.
const portionMax = 500

// replays reports whether the letters of a queue may have events replayed.
func (d *redriver) replays(w wakeQueue) bool { return d.ReplayFailed && w.name == QueueEvents }

// sift deals with the letters that need no move, a portion at a time, and returns
// how many others it met. It holds none of those when it returns, so that the move
// finds them.
func (d *redriver) sift(ctx context.Context, w wakeQueue) (kept int, err error) {
	s := &sieve{redriver: d, queue: w, judged: map[string]bool{}}
	for more := true; more && err == nil; {
		more, err = s.portion(ctx)
	}
	d.done.Judged = 0
	return s.kept, err
}

// sieve goes through a queue of wake-ups once.
//
// A queue promises no order: a letter that was given back may be the next one that
// it hands out, before any that nobody has seen. Letters that were judged are
// therefore known by their ids, and one that comes again is held until the
// portion ends, so that what is left to come is new. A portion judges at least as
// many as came again: whatever the order, a run receives each letter three times on
// average at most. On a queue that hands out last what was given back last, a
// portion holds only its own, but for the last one.
//
// The sift is over when a receive finds nothing: what the queue can show is then in
// this portion's hands, met again if it must be, or was removed. It is over as well
// when a portion met nothing new, and at [LettersMax], so that it ends whatever the
// queue does. What it did not meet is moved like the rest: a worker drops what is
// useless.
//
// A letter is dealt with in the seconds after its receive, while it is ours. A rival
// sees what we do not hold; one that judges a letter again finds what the row says
// by then, and a replay happens under the row's fence, so it happens once. If a
// portion outlasts [siftHides], its first letters show themselves, and are held
// again or are the rival's. No more than the judged ones are in flight, far below
// the 120,000 beyond which a queue shows nothing to anybody.
type sieve struct {
	*redriver

	queue  wakeQueue
	judged map[string]bool // by letters' ids, which is all that is remembered of them
	kept   int             // judged, and not removed

	// Of this portion: the newest handles by letters' ids, how many of these came
	// again, and how many letters were judged.
	held  map[string]webhook.Letter
	again int
	fresh int
}

// portion judges some letters and shows again what it did not remove, also when it
// is told to end. It reports whether there may be more.
func (s *sieve) portion(ctx context.Context) (more bool, err error) {
	s.held, s.again, s.fresh = map[string]webhook.Letter{}, 0, 0
	defer func() { err = errors.Join(err, s.giveBack(ctx)) }()
	for size := s.size(); (s.fresh < size || s.fresh < s.again) && len(s.judged) < LettersMax; {
		some, err := s.queue.letters.Receive(ctx, siftHides)
		switch {
		case err != nil:
			return false, unreachable("the queue", err)
		case len(some) == 0:
			return false, nil
		}
		met := s.fresh + s.again
		if err := s.letters(ctx, some); err != nil {
			return false, err
		}
		if s.fresh+s.again == met {
			break // these were in our hands, and their time is over
		}
	}
	return s.fresh > 0 && len(s.judged) < LettersMax, nil
}

// size is how many letters a portion judges: no more than can be removed, at the
// rate, in a quarter of the time for which they are hidden. The rest of the time
// is for reading rows and for replays.
func (s *sieve) size() int { return min(portionMax, s.Rate*int(siftHides/time.Second)/4) }

// giveBack shows again what the portion holds. What cannot be given back shows
// itself after [siftHides].
func (s *sieve) giveBack(ctx context.Context) error {
	if err := s.queue.letters.GiveBack(context.WithoutCancel(ctx), slices.Collect(maps.Values(s.held))); err != nil {
		return unreachable("the queue", err)
	}
	return nil
}

// letters deals with what one receive brought. All of it is ours to give back,
// whatever happens to the first.
func (s *sieve) letters(ctx context.Context, some []webhook.Letter) error {
	var fresh []webhook.Letter
	for _, l := range some {
		_, holds := s.held[l.ID]
		s.held[l.ID] = webhook.Letter{ID: l.ID, Handle: l.Handle}
		switch {
		case !s.judged[l.ID]:
			s.judged[l.ID] = true
			fresh = append(fresh, l)
		case !holds:
			s.again++
		}
	}
	for _, l := range fresh {
		if err := ctx.Err(); err != nil {
			return err
		}
		gone, err := s.letter(ctx, l)
		if gone {
			delete(s.held, l.ID)
		}
		if err != nil {
			return err
		}
		if !gone {
			s.kept++
		}
		s.fresh++
	}
	s.tell(s.done)
	return nil
}

// letter deals with one letter, and says whether it is gone.
func (s *sieve) letter(ctx context.Context, l webhook.Letter) (bool, error) {
	letter, err := s.queue.judge(ctx, l)
	if err != nil {
		return false, err
	}
	s.done.Judged++
	switch {
	case letter.Fate == FateFailed && s.ReplayFailed:
		if replayed, err := s.replay(ctx, letter); err != nil || !replayed {
			return false, err
		}
	case !s.Prune || !letter.Fate.Useless():
		return false, nil
	}
	if err := s.queue.letters.Remove(ctx, []webhook.Letter{l}); err != nil {
		return false, unreachable("the queue", err)
	}
	s.done.Removed++
	s.tell(s.done)
	return true, s.pace(ctx)
}

// replay replays a letter's event. One that is refused keeps its letter.
func (s *sieve) replay(ctx context.Context, l DeadLetter) (bool, error) {
	_, err := s.o.Replay(ctx, l.Wake.InboxID, s.Why)
	if err == nil {
		s.done.Replayed++
		return true, nil
	}
	code := codeOf(err)
	if code == "" || code == codeUnavailable || code == "caller_unknown" {
		return false, err
	}
	if s.done.Left == nil {
		s.done.Left = map[string]int{}
	}
	s.done.Left[code]++
	return false, nil
}
