package meshtest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SyscallConn lets QUIC forbid fragments, without which it would not find out how large packets
// may be. Simulated packets are never cut.
func (s *Socket) SyscallConn() (syscall.RawConn, error) { return standIn{}, nil }

// standIn takes options of a real socket, which nobody uses.
type standIn struct{}

func (standIn) Control(f func(fd uintptr)) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f(uintptr(fd))
	return unix.Close(fd)
}

func (standIn) Read(func(fd uintptr) bool) error  { return syscall.EOPNOTSUPP }
func (standIn) Write(func(fd uintptr) bool) error { return syscall.EOPNOTSUPP }
