package business

import (
	"fmt"
	"strconv"
	"strings"

	"dakghar/internal/webhook"
)

// Key addresses a row that belongs to an event's object. All rows of one object
// share a partition, which holds nothing else: no key of ours is hotter than the
// object itself, and a tenant's objects spread over the table.
//
// The object is named by tenant, provider, type and the provider's id. Providers
// draw ids that are unique among all their customers; senders of generic objects
// do not, so there the endpoint takes part and no sender can touch another's.
func Key(ev webhook.Event, sort ...string) webhook.Key {
	owner := []string{string(ev.Provider)}
	if ev.Facts.ObjectType == webhook.Object {
		owner = append(owner, string(ev.Endpoint))
	}
	object := append(owner, string(ev.Facts.ObjectType), ev.Facts.ObjectID)
	return TenantKey(ev.Tenant, object, sort...)
}

// TenantKey addresses a row of a tenant that belongs to no single object. Pick
// partition parts that spread the load: an id, never a constant.
func TenantKey(t webhook.Tenant, partition []string, sort ...string) webhook.Key {
	return webhook.Key{
		PK: join(append([]string{string(t)}, partition...)),
		SK: join(sort),
	}
}

// ProjectionKey addresses what an event's object is now.
func ProjectionKey(ev webhook.Event) webhook.Key { return Key(ev, "projection") }

// TicketKey addresses the counter that orders the reads of an event's object.
func TicketKey(ev webhook.Event) webhook.Key { return Key(ev, "ticket") }

// LedgerBalanceKey addresses the sums that an event is added to. An account's
// notices can come by the hundred in a second, so its sums are spread over
// [webhook.Shards] rows; every other object has one row.
func LedgerBalanceKey(ev webhook.Event) webhook.Key {
	if ev.Facts.ObjectType == webhook.Account {
		return shardKey(ev, webhook.ShardOf(string(ev.InboxID)))
	}
	return Key(ev, "balance")
}

// LedgerBalanceKeys addresses all rows whose sums make up an object's balance.
func LedgerBalanceKeys(ev webhook.Event) []webhook.Key {
	if ev.Facts.ObjectType != webhook.Account {
		return []webhook.Key{LedgerBalanceKey(ev)}
	}
	var keys []webhook.Key
	for shard := range webhook.Shards {
		keys = append(keys, shardKey(ev, shard))
	}
	return keys
}

func shardKey(ev webhook.Event, shard int) webhook.Key {
	return Key(ev, "balance", fmt.Sprintf("%02d", shard))
}

// LedgerEntryKey addresses the entry of one run of one event. A run that is
// applied twice overwrites its entry and raises the balance twice: counting
// entries against the balance shows it.
func LedgerEntryKey(ev webhook.Event) webhook.Key {
	return Key(ev, "entry", string(ev.InboxID), strconv.Itoa(ev.Run))
}

// join separates parts by #, escaped inside them, so that no two different lists
// of parts make the same key.
func join(parts []string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = strings.ReplaceAll(strings.ReplaceAll(p, "%", "%25"), "#", "%23")
	}
	return strings.Join(escaped, "#")
}
