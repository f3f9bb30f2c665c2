package live

import (
	"context"
	"errors"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/webhook"
)

// deaths are the faults of whole processes.
func deaths() []Fault {
	return []Fault{
		{
			Name: "relay-killed", Shows: "D5, W2", want: applied(2),
			Says: "The relay is killed between publishing and marking: wakes come twice, and the second finds nothing to do.",
			show: killedAt("RelayFunction", 2, fault.Fault{Service: "dynamodb", Operation: "UpdateItem", Table: "OutboxTable", Mode: fault.Stall, Count: 1}),
		},
		{
			Name: "worker-killed", Shows: "W2, W4, R1", want: applied(1), Slow: true,
			Says: "A worker is killed before it commits: when its lease is over, another one takes the event.",
			show: killedAt("ProcessorFunction", 1, completing(fault.Stall, 1)),
		},
		{
			Name: "worker-frozen", Shows: "W1, W2", want: applied(1), Slow: true,
			Says: "A worker is frozen until its lease was taken over and its event applied; it goes on, and writes nothing.",
			show: workerFrozen,
		},
	}
}

// killedAt kills a function's processes while a call of theirs is held.
func killedAt(function string, events int, at fault.Fault) func(context.Context, *Site) error {
	return func(ctx context.Context, s *Site) error {
		if err := s.arm(at); err != nil {
			return err
		}
		if err := s.send(ctx, events); err != nil {
			return err
		}
		if err := s.held(ctx, 1); err != nil {
			return err
		}
		if err := s.kill(function); err != nil {
			return err
		}
		// The call whose client has gone is not carried out.
		return errors.Join(s.letGo(ctx), s.clear())
	}
}

func workerFrozen(ctx context.Context, s *Site) error {
	read := fault.Fault{Service: "dynamodb", Operation: "GetItem", Table: "BusinessTable", Mode: fault.Stall, Count: 1}
	if err := s.arm(read); err != nil {
		return err
	}
	if err := s.send(ctx, 1); err != nil {
		return err
	}
	if err := s.held(ctx, 1); err != nil {
		return err
	}
	f, _ := s.Stack.Function("ProcessorFunction")
	var frozen []int
	for _, p := range f.Processes() {
		if p.Busy {
			frozen = append(frozen, p.PID)
		}
	}
	for _, pid := range frozen {
		if err := freeze(pid); err != nil {
			return err
		}
		defer func() { _ = thaw(pid) }() // it may have ended
	}
	s.step("processes %v are frozen", frozen)
	if err := s.clear(); err != nil {
		return err
	}
	if err := s.stands(ctx, s.sent[0], webhook.Processed); err != nil {
		return err
	}
	s.step("another worker has applied the event; the first goes on")
	return nil
}
