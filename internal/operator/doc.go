// Package operator is what a person may do to a running system: make endpoints,
// turn keys over, look at events, have samples sent. It is a stage like the
// others: it hands work on through stored rows, and returns values, which the
// command prints.
//
// Invariants:
//
//   - An endpoint changes only by [webhook.Endpoint]'s own methods, under the
//     revision it was read at, and together with the record of who did it and why.
//   - A command that died half-way is finished by running it again.
//   - Trust ends in the registry row first; what the secret store then says, or
//     whether it answers at all, changes nothing about it.
//   - Raw bytes leave the store only after the record of it was written.
//   - A letter leaves a dead-letter queue for good only after what it stands for
//     was done; looking takes nothing out.
//   - A shadow run writes nothing but its own record.
//   - Bytes are erased only after the event's row says so, and only those that no open
//     event and no event under legal hold needs.
//   - No value that is returned here carries a secret or a signature, but one: a
//     signing secret that was drawn for a partner is returned once, when it is made.
//
// The package refuses to take a secret for a name, an id or an order, to change
// the state of an event outside the protocol's transitions, to print, to ask, and
// to know AWS or the network.
package operator
