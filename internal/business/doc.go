// Package business holds the handlers: what an event means to our own tables.
// A handler reads, decides and returns a [webhook.Plan]; it writes nothing. The
// processor commits the plan in one transaction with the event's processed mark
// and its inbox row, so a plan holds business rows only.
//
// Beside each object's projection (what it is now) stands its ledger: one entry
// per applied event and a balance that is only ever added to. A projection looks
// right even when an event is applied twice; the ledger does not.
//
// Invariants it keeps:
//
//   - Order is decided by an authoritative version or a state graph, never by
//     arrival, receipt or the provider's clock. Where a write depends on what was
//     read, its own condition says so.
//   - Every order of arrival of an object's events ends in the same state, round
//     or version. Under a state graph it ends with the same balance too; under
//     versions a balance holds what was applied, so deltas do not belong there.
//     How many events were applied may differ, since what is overtaken before it
//     arrives is not, and so may which of several events that tell of one
//     position is the one that is named.
//   - Rows of two tenants never share a partition, nor do two objects.
//
// It refuses to send anything, to read a clock, and to guess: facts that make no
// sense are a permanent fault with a code, for an operator to see.
package business
