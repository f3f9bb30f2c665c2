// Package bench measures the figures that the design bounds: what the product
// costs beside the same work done bare, how soon it answers, how soon it starts,
// and how it bears a steady load and a backlog. There is no code here but tests,
// and they run only when BENCH_JSON or SOAK_JSON names the file that the figures
// go to (`make bench`, `make soak`).
//
// Invariants:
//
//   - A figure is reported, never asserted: another machine, or another load on
//     this one, would fail the build for nothing. What must hold on any machine
//     is asserted: that nothing was lost or doubled, and that both sides of a
//     comparison made the same calls.
//   - Two sides of a comparison run in turns, in one process, over the same
//     clients.
//   - What a figure does not count is said where it is measured.
package bench
