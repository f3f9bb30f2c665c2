// Package signature decides whether a request was signed by whom it says. A
// [Scheme] describes one sender's way of signing as data: which bytes are
// signed, where the signature and its time stand, how they are written and how
// a secret becomes a key. One engine checks them all.
//
// Two families are covered: an HMAC over a message template, and Ed25519 over
// the same template. A scheme may allow several [Method]s under one header; the
// method belongs to the key, so a request can offer a signature but never choose
// the key or the algorithm it is checked with.
//
// Checking has three steps, in the order in which they get dearer:
//
//   - [Scheme.Metadata] reads the signature headers alone;
//   - [Scheme.Verify] checks every offered signature against every trusted key,
//     over the raw bytes, in constant time and without stopping early;
//   - [Scheme.Fresh] compares the signed time with a clock reading.
//
// Invariants it keeps:
//
//   - Every encoding is strict: one text for one value. Hexadecimal is lower
//     case, base64 is canonical, a time is digits only.
//   - The text of a time is signed as it was received, never printed anew.
//   - A header that came twice is refused, also when the transport joined the
//     two with a comma. Nothing takes the first of several.
//   - Work is bounded before a key is used: [HeaderBytesMax], [CandidatesMax].
//   - Neither a key, a secret nor a signature is in any error or printed value.
//
// The package is pure: it reads no clock, keeps no state and logs nothing.
package signature
