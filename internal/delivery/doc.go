// Package delivery holds the words of the outbound half: subscriptions, the
// deliveries of events to them, the attempts of a delivery, the states that a
// delivery can be in and every permitted transition between them, the named
// profiles, and how a request is signed.
//
// Invariants it keeps:
//
//   - A delivery's [ID] is derived from tenant, effect, subscription and
//     generation, so that of many wake-ups and many fan-outs there is one delivery,
//     and an operator's replay is another.
//   - A delivery changes only by a [Change], which one of the named transitions
//     returns together with the guard that the store must find true. Every change
//     raises its fence.
//   - An attempt is counted before anything is sent.
//   - What is signed is the stored bytes of the event, never an encoding of them.
//
// The package is pure: it reads no clock, draws no randomness, knows no storage
// and no network, and logs nothing.
package delivery
