package shelf

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate takes room on the disk for so many bytes of a file.
func allocate(f *os.File, bytes int) error { return unix.Fallocate(int(f.Fd()), 0, 0, int64(bytes)) }
