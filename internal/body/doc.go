// Package body keeps the raw bytes of accepted requests: compressed, sealed,
// for a bounded life. It is the store behind the first step of Accept and the
// only reader of what it wrote.
//
// # Rows
//
// Everything has one row in the Body table; attribute names are short because
// every byte of them is billed.
//
//	attribute  on         what
//	id   S     both       the body id; "key#" and the key id for a key row
//	z    B     body       the sealed bytes, when they fit inline
//	r    S     body       else the bucket key of the object that holds them
//	k    S     body       the id of the data key that sealed them
//	p    S     body       put_id: the request that wrote or renewed the row last
//	i    S     body       the first inbox_id that came with these bytes
//	x    N     both       the table's time to live, epoch seconds
//	t    N     body       when it was renewed last, epoch seconds; absent if it never was
//	w    B     key        the data key, wrapped by KMS
//
// A body is content-addressed, so whoever writes a body id writes the same
// bytes; what may differ is the sealing around them.
//
// # Sealing
//
// Bytes are compressed with zstd and sealed with AES-256-GCM under a random 96
// bit nonce: version byte, nonce, ciphertext and tag. The additional data are
// the version byte, the body id and the key id, so a sealed body opens only in
// its own row. Data keys come from KMS under the context {tenant, purpose:
// body}; each process has its own, for at most an hour and 2^20 bodies. The
// wrapped key is stored, and the store has confirmed it, before the first body
// uses the key. With KMS down, keys at hand serve until they are an hour old;
// then the error is of kind ours.
//
// A key row outlives every body sealed under its key: it lives for the key's
// hour, a body's life and a week more. Renewing a body therefore seals it anew
// under a present key: extending the life of the row alone would leave it
// with a key row that ends earlier. In a table that bills the whole item for
// any update this costs nothing, and it heals a damaged row.
//
// # Objects
//
// Sealed bytes above the inline limit go to the bucket, under a key that is
// used once: bodies/<body id>/<put_id>.<random>. The object comes first, then the
// row that refers to it; every condition is on the row, exactly as for inline
// bodies. The other way, one object per body with the put_id in its metadata,
// cannot express the conditional delete: an entity tag is the same before and
// after a renewal by a rival. What can happen to a request that stores a body:
//
//   - It dies before the object: nothing is there. After the object: nothing
//     refers to it, the bucket's lifecycle takes it. After the row: the body
//     without an event; its retry finds it and renews it.
//   - It runs twice, by its provider's retry: each run uploads under its own
//     key, one row wins, the other finds Existed. Twice inside the SDK, because a
//     reply was lost: the object's key is taken by its own earlier try (If-None-Match
//     says so), the row has its own put_id; both count as done.
//   - It comes late: no upload is ever deleted but through its own row, also when the
//     row is known to have lost, since a delayed write could still land and
//     would then refer to nothing. A superseded object stays readable until the
//     bucket's lifecycle takes it, for readers that hold the older row.
//   - A rival renews between a reader's two reads: the object of the older row is
//     still there. A rival removes: the row goes first, its object after; a reader
//     in between finds no object, which is the truth.
//
// The bucket's lifecycle must leave objects at least a day longer than a body's
// life. A row that is over, not swept, and without its object is renewed like any other.
//
// # Erasing and legal hold
//
// [Store.Erase] takes the object before the row, the reverse of all others: a death
// in between leaves a row that still names what is left, and by then nobody may
// read it any more. Objects that a renewal superseded go with the bucket's lifecycle.
//
// [Store.HoldCopy] keeps an event's own copy, with its wrapped key, in rows without
// a life ("hold#"): neither the sweep, nor a renewal that seals anew, nor the
// erasing of another event with these bytes reaches it.
//
// # Expiry
//
// The expiry told to callers is exact: received + life. The table's time to
// live is an hour later, so that two requests whose clocks or order differ by
// seconds can renew one row in either order and neither shortens what the other
// was told. A row that is over but not swept yet is a row: [Store.Put] finds it
// existing, [Store.Renew] renews it, [Store.Open] opens it. Acting on the clock
// instead would make the answer depend on whose clock. The one exception is a body
// that is to be lasting, an effect's: nobody renews it, and the writer's clock makes
// it live longer, never shorter.
//
// # What it refuses
//
// It stores no body above 1 MiB and opens none that unpacks to more; it returns
// no bytes whose digest is not the one asked for; it raises no row by a renewal;
// it retries nothing by itself, logs nothing, and puts no part of a body in an error.
package body
