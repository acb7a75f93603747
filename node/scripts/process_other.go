//go:build !linux

package scripts

import "syscall"

// attributes makes a command the head of a group, which outlives this process if that is killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
