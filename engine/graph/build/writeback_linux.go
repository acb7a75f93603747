package build

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriting makes the kernel begin writing what was just written to the file, so that
// little is left for the sync. It is a hint: any error will show up in the sync.
func startWriting(file *os.File, at int64, n int) {
	if n >= copyBuffer {
		_ = unix.SyncFileRange(int(file.Fd()), at, int64(n), unix.SYNC_FILE_RANGE_WRITE)
	}
}
