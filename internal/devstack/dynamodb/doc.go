// Package dynamodb is an in-memory DynamoDB with DynamoDB Streams that speaks
// the AWS JSON 1.0 wire protocol over HTTP, for one machine: `make run`, tests
// and load tests. It exists because no Go emulator keeps what the webhook
// protocol rests on: transactions with ordered reasons and request tokens,
// exact decimals, numerically sorted sparse indexes, and stream records that
// appear together with the write that caused them.
//
// Invariants:
//
//   - One lock guards the whole store. A call holds it from reading the items it
//     judges to appending the stream records it causes, so every call is
//     serialisable and a transaction is all or nothing.
//   - A stored value is never changed in place. Readers take pointers under the
//     lock and encode them after it.
//   - Numbers are exact decimals of up to 38 digits; no float64 touches them.
//   - Sizes, capacity units and limits follow the published formulas; where
//     DynamoDB Local deviates from the service, the service is followed and the
//     deviation is listed in the differential test.
//
// What it refuses: every call outside the list in [Operations], every request
// member it does not implement (legacy conditions, local secondary indexes,
// provisioned throughput, tags, encryption settings …) and every member it does
// not know. It never accepts and ignores.
//
// What it does not have: authentication, throttling, transaction conflicts
// between concurrent calls (they are serialised instead), eventually consistent
// reads, shard splits, expiry by timer (see [Server.ExpireNow]) and persistence.
package dynamodb
