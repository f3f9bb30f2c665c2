package dynamo

import (
	"context"
	"iter"
	"time"

	"dakghar/internal/webhook"
)

// Arrivals is [Store.RecentInbox] for a reader who mostly wants the first: it reads
// few rows to begin with, and passes over one that cannot be read.
func (s *Store) Arrivals(ctx context.Context, e webhook.EndpointID, since, until time.Time) iter.Seq2[webhook.Inbox, error] {
	return func(yield func(webhook.Inbox, error) bool) {
		for _, day := range daysBack(until, since) {
			merged := s.newShards(s.Tables.Inbox, since, until, "recent", "rk", "ra", func(shard int) string { return recentKey(e, day, shard) })
			for limit := firstArrivals; ; limit = batchGetMax {
				ids, err := merged.next(ctx, limit)
				if err == nil && len(ids) == 0 {
					break
				}
				var rows map[webhook.InboxID]webhook.Inbox
				if err == nil {
					rows, _, err = s.InboxRows(ctx, namesOf[webhook.InboxID](ids))
				}
				if err != nil {
					yield(webhook.Inbox{}, err)
					return
				}
				for _, id := range ids {
					if row, ok := rows[webhook.InboxID(id)]; ok && !yield(row, nil) {
						return
					}
				}
			}
		}
	}
}

// firstArrivals is how many rows are read before it is known whether more are wanted.
const firstArrivals = 4
