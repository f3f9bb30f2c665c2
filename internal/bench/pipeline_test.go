package bench

import "testing"

func measureCopies(t *testing.T, f *figures) {}
func measureStall(t *testing.T, f *figures)  {}
func measureSoak(t *testing.T, f *figures)   {}
