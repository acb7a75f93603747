package scripts

import "syscall"

// attributes makes a command the head of a group that is killed with this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
