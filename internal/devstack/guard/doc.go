// Package guard lets each function of a local stack make the AWS calls that its
// role in the template allows, and no other.
//
// A function is known by its access key, which is its logical id: nobody checks
// a signature on one machine, so this finds mistakes, not malice. Whoever signs
// with another key, such as the operator's command and what polls streams and
// queues for the functions, is not restricted.
//
// Invariants:
//   - every call of a function is judged, before anything else sees it: one that
//     this package cannot read is denied;
//   - a call that is made of several (a transaction, a batch, an object that S3
//     seals with a key) needs every permission that AWS asks for;
//   - a denied call is answered as its service answers one, and said in the log
//     with role, action and resource; values of items are in neither.
//
// It reads the policies of roles. Policies of resources (queues, buckets, keys),
// session policies and service control policies are AWS's alone.
//
// Facts: https://docs.aws.amazon.com/service-authorization/latest/reference/ and,
// for transactions, amazondynamodb/latest/developerguide/transaction-apis-iam.html.
package guard
