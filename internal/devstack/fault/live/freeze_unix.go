//go:build unix

package live

import "syscall"

// freeze stops a process where it is; thaw lets it go on.
func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }
func thaw(pid int) error   { return syscall.Kill(pid, syscall.SIGCONT) }
