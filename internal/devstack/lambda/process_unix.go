//go:build unix

package lambda

import "syscall"

// processAttributes puts each sandbox into a process group of its own: Ctrl-C in
// the terminal must reach only the local stack, which then shuts down in order.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// background makes the process group of a sandbox give way to whatever else wants
// the processor. A system that does not let it loses nothing but that.
func background(pid int) { _ = syscall.Setpriority(syscall.PRIO_PGRP, pid, 10) }
