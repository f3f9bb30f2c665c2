// Package provider is the contract between the pipeline and the senders of
// webhooks. An [Adapter] is one sender, mostly as data: how it signs, what its
// requests look like, where an event's identity, type and facts stand, and what
// is known about its redeliveries. The pipeline has no line for any one sender.
//
// What each adapter must state, the package documentation of its own package
// says in words and its declaration says in data: which of id, type and time the
// signature covers, what stays the same across automatic retries and a manual
// redelivery, how far back a redelivery may reach, what evidence of order there
// is, and where all this was read.
//
// # Strict JSON, decided once
//
// A body is read only after its signature was checked, and in one way:
//
//   - It is one JSON object in valid UTF-8 (RFC 8259), with nothing after it and
//     no byte order mark before it. Otherwise: body_malformed.
//   - Names match exactly, by their decoded text. A name that an object has
//     twice, anywhere in the body, is body_ambiguous.
//   - In an object on the way to something that we read, two names that differ
//     only in case are body_ambiguous too, by Unicode's simple folding, which
//     takes the Kelvin sign for a k. Decoders that ignore case, Go's own
//     among them, would let the later one shadow the other, so two readers of
//     one body could see two events.
//   - At most [DepthMax] objects and arrays stand inside each other:
//     body_too_deep.
//   - A number that we read is a plain integer within 64 bits, without sign tricks,
//     fraction or exponent. Amounts with a fraction are read from text of at most
//     [NumberBytesMax] bytes. Numbers that nobody reads may be as they like: they
//     are signed bytes and stay so.
//   - A body in a form (GitHub) is one field and nothing else, whose value is such
//     a JSON object. Whether a body is a form is read from the signed bytes, and
//     an unsigned Content-Type that says otherwise is refused.
//
// A refusal is a [BadBody] with a stable code. It never repeats the body.
//
// # The sender's own API
//
// An [API], a [Current] and a [History] say as data how an object's present state
// and past events are asked for. The package makes the calls and reads the
// answers; it sends nothing. An answer is read as strictly as a body. What of an
// event enters an address is one object id, and only if it matches an alphabet
// that cannot lead out of its place; [Adapter.Validate] holds the alphabets to that.
//
// The package refuses to read a body before it was verified, to derive an
// identity from a payload, to guess a state or an amount, and to know storage,
// network or clock.
package provider
