// Package archtest holds the tree to its own layout: who may import whom, what each package says about itself, and what
// no file may contain.
//
// The rules are data (rules.go), each with the sentence of the design that it keeps; a violation is reported with that
// sentence. Only what is built for use is judged: tests may import what they exercise. The package reads source text and
// nothing else. It judges neither style, which is the linter's, nor behaviour.
package archtest
