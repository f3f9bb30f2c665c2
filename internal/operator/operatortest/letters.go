package operatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// LetterQueue is a dead-letter queue. Its letters are in the order in which they
// are handed out; a handle is good until the letter is handed out again.
type LetterQueue struct {
	Letters []webhook.Letter
	// Order, when set, arranges the letters before each receive.
	Order func([]webhook.Letter)
	// Sent are the bodies that moves have brought back.
	Sent []string
	// Task is the newest move. While it runs, each look at it moves one letter.
	Task *webhook.Move

	hidden  map[string]time.Time
	handles int
}

// Put adds a letter.
func (q *LetterQueue) Put(id, body string, at time.Time) {
	q.Letters = append(q.Letters, webhook.Letter{ID: id, Body: body, SentAt: at, Receives: 5})
}

// lettersAtOnce is small, so that a test meets more than one receive.
const lettersAtOnce = 2

type letters struct {
	w *World
	q *LetterQueue
}

// begin fails a call, as it is told to or since its caller has gone.
func (l letters) begin(ctx context.Context, call string) error {
	if err := l.w.Fail(call); err != nil {
		return err
	}
	return ctx.Err()
}

func (l letters) Receive(ctx context.Context, hidden time.Duration) ([]webhook.Letter, error) {
	if err := l.begin(ctx, "Receive"); err != nil {
		return nil, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.q.Order != nil {
		l.q.Order(l.q.Letters)
	}
	var got []webhook.Letter
	for i := range l.q.Letters {
		letter := &l.q.Letters[i]
		if l.isHidden(*letter) || len(got) == lettersAtOnce {
			continue
		}
		l.q.handles++
		letter.Handle = fmt.Sprint("handle-", l.q.handles)
		letter.Receives++
		l.hide(letter.ID, l.w.Clock.Add(hidden))
		got = append(got, *letter)
	}
	return got, l.w.Lose("Receive")
}

func (l letters) isHidden(letter webhook.Letter) bool { return l.q.hidden[letter.ID].After(l.w.Clock) }

func (l letters) hide(id string, until time.Time) {
	if l.q.hidden == nil {
		l.q.hidden = map[string]time.Time{}
	}
	l.q.hidden[id] = until
}

func (l letters) GiveBack(ctx context.Context, given []webhook.Letter) error {
	if err := l.begin(ctx, "GiveBack"); err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, letter := range l.q.Letters {
		if slices.ContainsFunc(given, named(letter)) {
			l.hide(letter.ID, time.Time{})
		}
	}
	return l.w.Lose("GiveBack")
}

func (l letters) Remove(ctx context.Context, gone []webhook.Letter) error {
	if err := l.begin(ctx, "Remove"); err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.q.Letters = slices.DeleteFunc(l.q.Letters, func(there webhook.Letter) bool { return slices.ContainsFunc(gone, named(there)) })
	return l.w.Lose("Remove")
}

// named finds a letter by the handle that it has now.
func named(there webhook.Letter) func(webhook.Letter) bool {
	return func(l webhook.Letter) bool { return l.ID == there.ID && l.Handle == there.Handle }
}

func (l letters) Depth(context.Context) (webhook.Depth, error) {
	if err := l.w.Fail("Depth"); err != nil {
		return webhook.Depth{}, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	var d webhook.Depth
	for _, letter := range l.q.Letters {
		if l.isHidden(letter) {
			d.Hidden++
		} else {
			d.Waiting++
		}
	}
	return d, nil
}

func (l letters) Move(_ context.Context, _ int) error {
	if err := l.w.Fail("Move"); err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.q.Task != nil && l.q.Task.Running {
		return errors.New("operatortest: a move runs already")
	}
	l.q.Task = &webhook.Move{StartedAt: l.w.Clock, Running: true}
	for _, letter := range l.q.Letters {
		if !l.isHidden(letter) {
			l.q.Task.ToMove++
		}
	}
	return l.w.Lose("Move")
}

func (l letters) LastMove(context.Context) (webhook.Move, bool, error) {
	if err := l.w.Fail("LastMove"); err != nil {
		return webhook.Move{}, false, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	task := l.q.Task
	if task == nil {
		return webhook.Move{}, false, nil
	}
	l.step(task)
	return *task, true, nil
}

// step moves one letter, or ends the move.
func (l letters) step(task *webhook.Move) {
	if !task.Running {
		return
	}
	at := slices.IndexFunc(l.q.Letters, func(letter webhook.Letter) bool { return !l.isHidden(letter) })
	if at < 0 || task.Moved == task.ToMove {
		task.Running = false
		return
	}
	l.q.Sent = append(l.q.Sent, l.q.Letters[at].Body)
	l.q.Letters = slices.Delete(l.q.Letters, at, at+1)
	task.Moved++
}
