package build

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriting has the disk begin with what was just written, so that little is left
// when the file is synced. It is a hint: whatever it says, the sync will say too.
func startWriting(file *os.File, at int64, n int) {
	if n >= copyBuffer {
		_ = unix.SyncFileRange(int(file.Fd()), at, int64(n), unix.SYNC_FILE_RANGE_WRITE)
	}
}
