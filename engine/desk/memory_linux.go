package desk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// share makes a file in memory and maps it. It can be neither grown nor shrunk any more,
// since a process that reads beyond the end of a mapped file is killed.
func share(bytes int) (file *os.File, data []byte, err error) {
	fd, err := unix.MemfdCreate("hopmesh-batch", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	file = os.NewFile(uintptr(fd), "hopmesh-batch")
	defer func() {
		if err != nil {
			_ = file.Close() // it was never used
		}
	}()
	// Its pages are taken now: later, the lack of one would kill whoever touches it.
	if err := unix.Fallocate(fd, 0, 0, int64(bytes)); err != nil {
		return nil, nil, os.NewSyscallError("fallocate", err)
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	data, err = unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return file, data, nil
}

func unshare(data []byte) {
	if err := unix.Munmap(data); err != nil {
		panic(fmt.Sprintf("desk: unmap %d bytes: %v", len(data), err)) // it was mapped by share
	}
}

// again returns another descriptor of a file.
func again(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}
