// Package secret reads and writes the signing secrets of endpoints: one Secrets
// Manager secret per endpoint, one version of it per key.
//
// [Cache] is what a receiver reads through, [Store] what an operator writes
// through. [Named] reads plain secrets, which sign nothing: the credentials for
// providers' own APIs.
//
// Trust and value are two questions. Which versions verify is decided by the
// endpoint's registry row alone. This package answers only what the bytes of a
// version are, and they never change: a cached value cannot be wrong. So the
// two ages of an entry mean:
//
//   - Past the soft age (5 minutes) the next use asks the store, in the
//     background, whether it still has the version. A yes makes the entry young
//     again, so that an outage finds it with close to an hour left, however long
//     ago it was first read. A definite no drops it: value and list must both be
//     there. Silence changes nothing.
//   - Past the hard age (1 hour without a yes) it is not served any more. Then
//     the store must answer, or the caller gets an error of kind ours, which is
//     a retryable answer to the provider: we fail closed.
//
// Invariants:
//
//   - One call at a time per version. A caller waits for it no longer than its
//     own context; the call itself ends by its own timeout, so that one caller's
//     departure does not fail the others.
//   - No lock is held over a call: a blocked call for one endpoint delays no other.
//   - A failed call is remembered, and not repeated before a pause that doubles.
//     What a secret's missing versions may cost is a small allowance per secret,
//     and what unmatched signatures may cost is one look-up a second for the
//     process. No flood of requests becomes a flood of calls.
//   - The number of entries is bounded; the least recently used one goes.
//   - Values rest sealed with AES-256-GCM under a key drawn at start, bound to
//     their place. This keeps them out of heap dumps, core files and crash
//     reports that show a part of the memory; whoever reads the whole of it has
//     the key too.
//   - Every type here prints as [redacted], and no error carries a value or a
//     word of the store's own message.
//
// It refuses to decide trust, to write a log, to hand out an empty secret, and
// to retry by itself.
package secret
