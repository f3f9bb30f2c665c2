package reconciler

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Lanes are the parts of one walk that are read side by side, a page at a time:
// the shards of an index, or the segments of a table. They are what a walk that
// stops leaves behind: the next one goes on from them, and each page is compared
// once.
type Lanes struct {
	After []string `json:"after"` // where each goes on
	Done  []bool   `json:"done"`
}

func newLanes(n int) Lanes { return Lanes{After: make([]string, n), Done: make([]bool, n)} }

// of reports whether the lanes are a walk of n parts: what was stored may be of
// an older program.
func (l Lanes) of(n int) bool { return len(l.After) == n && len(l.Done) == n }

func (l Lanes) whole() bool {
	for _, done := range l.Done {
		if !done {
			return false
		}
	}
	return true
}

// walk compares pages until every lane is done, has had its share of pages, met
// an error, or the context is over. A lane moves only past a page that was
// compared whole. One lane's error leaves the others alone; the first is returned.
func (c *Comparer) walk(ctx context.Context, l *Lanes, pagesMax int, read func(ctx context.Context, lane int, after string) (page, error)) (Tally, error) {
	var mu sync.Mutex
	total := Tally{Found: map[Finding]int{}}
	var group errgroup.Group
	group.SetLimit(c.AtOnce)
	for lane := range l.After {
		if l.Done[lane] {
			continue
		}
		group.Go(func() error {
			for range pagesMax {
				if ctx.Err() != nil || l.Done[lane] {
					return nil //nolint:nilerr // the time is up: the next run goes on from the cursor
				}
				p, err := read(ctx, lane, l.After[lane])
				var met compared
				if err == nil {
					met, err = c.compare(ctx, p)
				}
				mu.Lock()
				c.count(&total, met)
				mu.Unlock()
				if err != nil {
					return unlessOver(ctx, err)
				}
				l.After[lane], l.Done[lane] = p.next, p.next == ""
			}
			return nil
		})
	}
	return total, group.Wait()
}

func (c *Comparer) count(total *Tally, met compared) {
	total.Compared += met.events
	for _, d := range met.details {
		total.Found[d.Finding]++
		if c.Tell != nil {
			c.Tell(d)
		}
	}
}

// unlessOver drops the error of a call that the end of the pass cut off.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // that is what the function is for
	}
	return err
}
