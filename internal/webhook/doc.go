// Package webhook holds the words of the inbound half: identifiers, the inbox
// and outbox rows, the states a row can be in and every permitted transition
// between them.
//
// Invariants it keeps:
//
//   - An [InboxID] is derived from identity scope, provider and the provider's
//     event id, so the primary key of the inbox is the unique key itself.
//   - A row changes only by a [Change], which one of the named transitions
//     returns together with the [Guard] that the store must find true. A change
//     that was decided on an outdated row writes nothing.
//   - Every change raises the row's fence by one, and nothing lowers it.
//
// The package is pure: it reads no clock, draws no randomness, knows no storage
// and logs nothing. Time, chance and identifiers are arguments.
package webhook
