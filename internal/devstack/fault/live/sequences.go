package live

import (
	"context"
	"errors"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/webhook"
)

// sequences are the faults of events that wait for each other.
func sequences() []Fault {
	return []Fault{
		{
			Name: "gap", Shows: "O4, W2", want: applied(3),
			Says: "The events of one object arrive in the wrong order: those that are early are parked, and applied when their turn comes.",
			show: func(ctx context.Context, s *Site) error {
				for _, number := range []int64{3, 2} {
					if err := s.sendStep(ctx, number); err != nil {
						return err
					}
					if err := s.stands(ctx, s.sent[len(s.sent)-1], webhook.Parked); err != nil {
						return err
					}
					s.step("it is parked")
				}
				return s.sendStep(ctx, 1)
			},
		},
		{
			Name: "gap-never-closes", Shows: "O4, A6", want: map[string]int{"PROCESSED applied": 1, "FAILED": 1}, Slow: true,
			Says: "A gap never closes: at its deadline the event that waits behind it fails, where it is seen.",
			show: func(ctx context.Context, s *Site) error {
				return errors.Join(s.sendStep(ctx, 1), s.sendStep(ctx, 3))
			},
		},
		{
			Name: "neighbours-race", Shows: "O4, W2", want: applied(2),
			Says: "An event is about to be parked while the one before it is applied: it finds that its turn has come.",
			show: func(ctx context.Context, s *Site) error {
				parking := completing(fault.Stall, 1) // the transaction that parks is on the same table
				if err := s.arm(parking); err != nil {
					return err
				}
				if err := s.sendStep(ctx, 2); err != nil {
					return err
				}
				if err := s.held(ctx, 1); err != nil {
					return err
				}
				s.step("it is about to be parked")
				if err := s.sendStep(ctx, 1); err != nil {
					return err
				}
				return errors.Join(s.stands(ctx, s.sent[1], webhook.Processed), s.clear())
			},
		},
	}
}
