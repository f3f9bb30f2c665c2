//go:build !unix

package lambda

import "syscall"

func processAttributes() *syscall.SysProcAttr { return nil }

func background(int) {}
