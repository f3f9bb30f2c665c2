package main

import "testing"

// The list of faults needs no stack; a name that is none starts none.
func TestDevFaults(t *testing.T) {
	s := newShell(t)
	s.run("", "dev", "--fault", "list")
	s.run("", "dev", "--fault", "list", "--json")
	s.run("", "dev", "--fault", "lost-strem")
	s.run("", "dev", "--fault", "lost-stream", "--no-triggers")
	s.wantGolden("fault")
}
