// Package limit says how much may pass: a rate and a burst that many processes
// share through one row, and a coarse one of this process alone for each source
// address.
//
// Invariants:
//
//   - In the long run all processes together let in what the rate allows, whatever
//     each of them guessed, and whatever their clocks say.
//   - A row that does not answer refuses nobody by that.
//   - What strangers can fill is bounded.
//
// It decides nothing about what is refused, and draws no chance.
package limit
