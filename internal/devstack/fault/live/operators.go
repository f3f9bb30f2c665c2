package live

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/webhook"
)

// operators are the faults in which an operator has a part.
func operators() []Fault {
	const why = "a fault is shown"
	return []Fault{
		{
			Name: "late-after-hold", Shows: "R3, W2", want: applied(1),
			Says: "An operator holds an event while its worker commits; the worker writes nothing, and the released event is applied once.",
			show: func(ctx context.Context, s *Site) error {
				id, err := committing(ctx, s)
				if err != nil {
					return err
				}
				if _, err := s.Operator.Hold(ctx, id, why); err != nil {
					return err
				}
				s.step("the event is held; its worker's commit goes on")
				if err := errors.Join(s.clear(), s.idle(ctx)); err != nil {
					return err
				}
				if err := s.stands(ctx, s.sent[0], webhook.Held); err != nil {
					return err
				}
				s.step("it is still held, and is released")
				_, err = s.Operator.Release(ctx, id, why)
				return err
			},
		},
		{
			Name: "late-after-replay", Shows: "R3, W2", want: applied(1),
			Says: "An operator fails and replays an event while its worker commits; another worker applies it, and the first writes nothing.",
			show: func(ctx context.Context, s *Site) error {
				id, err := committing(ctx, s)
				if err != nil {
					return err
				}
				if _, err := s.Operator.Fail(ctx, id, why); err != nil {
					return err
				}
				if _, err := s.Operator.Replay(ctx, id, why); err != nil {
					return err
				}
				s.step("the event is failed and replayed; its first worker's commit goes on")
				if err := s.stands(ctx, s.sent[0], webhook.Processed); err != nil {
					return err
				}
				return errors.Join(s.clear(), s.idle(ctx))
			},
		},
		{
			Name: "replay-applied", Shows: "R3", want: applied(1),
			Says: "An operator replays an event that was applied, and is refused.",
			show: func(ctx context.Context, s *Site) error {
				if err := s.send(ctx, 1); err != nil {
					return err
				}
				if err := s.stands(ctx, s.sent[0], webhook.Processed); err != nil {
					return err
				}
				_, err := s.Operator.Replay(ctx, s.sent[0].inboxID(), why)
				if err == nil {
					return errors.New("an applied event was replayed")
				}
				s.step("refused: %v", err)
				return nil
			},
		},
		{
			Name: "replay-twice", Shows: "R3", want: applied(1),
			Says: "Two operators replay one event at once: one of them does, and it is applied once.",
			show: replayTwice,
		},
		{
			Name: "old-scan", Shows: "R1, R3", want: applied(1),
			Says: "The reconciler has scanned an event's promise, and the event is failed and replayed before it acts: it touches nothing of the new life.",
			show: func(ctx context.Context, s *Site) error {
				if err := unpublished(ctx, s, 1, func(context.Context) error { return nil }); err != nil {
					return err
				}
				id := s.sent[0].inboxID()
				// What the reconciler reads of a promise's subject, after its scan.
				read := fault.Fault{Service: "dynamodb", Operation: "BatchGetItem", Table: "InboxTable", Mode: fault.Stall, Count: 1}
				if err := s.arm(reading(fault.Lose, 0), read); err != nil {
					return err
				}
				if err := errors.Join(s.hurry(ctx), s.held(ctx, 1)); err != nil {
					return err
				}
				s.step("the reconciler has read the promise, and waits")
				s.Stack.Faults().Clear("dynamodbstreams")
				if _, err := s.Operator.Fail(ctx, id, why); err != nil {
					return err
				}
				if _, err := s.Operator.Replay(ctx, id, why); err != nil {
					return err
				}
				return s.clear()
			},
		},
	}
}

// committing sends an event and returns while its worker's commit is held.
func committing(ctx context.Context, s *Site) (webhook.InboxID, error) {
	if err := s.arm(completing(fault.Stall, 1)); err != nil {
		return "", err
	}
	if err := s.send(ctx, 1); err != nil {
		return "", err
	}
	return s.sent[0].inboxID(), s.held(ctx, 1)
}

// idle waits until no worker works.
func (s *Site) idle(ctx context.Context) error {
	f, _ := s.Stack.Function("ProcessorFunction")
	return s.await(ctx, "all workers have finished", func() (bool, error) {
		for _, p := range f.Processes() {
			if p.Busy {
				return false, nil
			}
		}
		return true, nil
	})
}

func replayTwice(ctx context.Context, s *Site) error {
	if err := unpublished(ctx, s, 1, func(context.Context) error { return nil }); err != nil {
		return err
	}
	id := s.sent[0].inboxID()
	if _, err := s.Operator.Fail(ctx, id, "a fault is shown"); err != nil {
		return err
	}
	// Both commits are held until both operators have read the row.
	if err := s.arm(fault.Fault{Service: "dynamodb", Operation: "TransactWriteItems", Table: "RegistryTable", Mode: fault.Stall, Count: 2}); err != nil {
		return err
	}
	var running sync.WaitGroup
	results := make([]error, 2)
	for i := range results {
		running.Go(func() { _, results[i] = s.Operator.Replay(ctx, id, fmt.Sprintf("operator %d", i+1)) })
	}
	err := errors.Join(s.held(ctx, 2), s.clear())
	running.Wait()
	if err != nil {
		return err
	}
	for i, r := range results {
		s.step("operator %d: %s", i+1, done(r))
	}
	if (results[0] == nil) == (results[1] == nil) {
		return errors.New("it is not one of two operators who replayed the event")
	}
	return nil
}

func done(err error) string {
	if err != nil {
		return "refused: " + err.Error()
	}
	return "done"
}
