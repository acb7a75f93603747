package build

import (
	"os"

	"golang.org/x/sys/unix"
)

// punch gives bytes that are not read any more back to the disk.
func punch(file *os.File, at, n int64) error {
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, n)
}

// startWriting makes the kernel begin writing what was just written to the file, so that
// little is left for the sync. It is a hint: any error will show up in the sync.
func startWriting(file *os.File, at int64, n int) {
	if n >= copyBuffer {
		_ = unix.SyncFileRange(int(file.Fd()), at, int64(n), unix.SYNC_FILE_RANGE_WRITE)
	}
}
