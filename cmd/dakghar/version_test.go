package main

import (
	"runtime/debug"
	"testing"
)

// A program says what it was built from, and that it does not know.
func TestVersionCommand(t *testing.T) {
	s := newShell(t)
	s.run("", "version")
	s.build = &debug.BuildInfo{
		GoVersion: "go1.26.1", Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "f94477e"}, {Key: "vcs.modified", Value: "true"}},
	}
	s.run("", "version")
	s.run("", "version", "--json")
	s.wantGolden("version")
}
