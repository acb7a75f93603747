package scripts

import "syscall"

// attributes makes a command the head of a group. The head is killed with this process; what it has
// started is then not, and ends when it finds itself without it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
