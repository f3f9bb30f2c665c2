//go:build unix

package lambda

import "syscall"

// processAttributes puts each sandbox into a process group of its own: Ctrl-C in
// the terminal must reach only the local stack, which then shuts down in order.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
