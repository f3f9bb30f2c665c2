// Package capacity computes what a rate of webhooks asks of an AWS account: write
// and read units by stage and table, Lambda concurrency, processor time, calls,
// storage, the quotas that do not suffice, and dollars.
//
// Invariants:
//
//   - It is arithmetic: the same load and the same prices give the same report.
//   - Units are those that the tests count on the embedded store, by stage and by
//     table; a test fails when one of them moves.
//   - What is measured, what is assumed and what was read somewhere is told apart
//     in each line, and every price and quota names the page that decides.
//
// It asks no service and no clock, and knows nothing of discounts, free tiers,
// support plans or taxes. It refuses a load that makes no sense rather than
// computing with it.
package capacity
