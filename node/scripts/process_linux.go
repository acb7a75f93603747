package scripts

import "syscall"

// attributes makes a command the head of a group. The head is killed with this process, and what the
// head has started is not.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
