//go:build !unix

package live

import "errors"

func freeze(int) error { return errors.New("this system cannot freeze a process") }
func thaw(int) error   { return nil }
