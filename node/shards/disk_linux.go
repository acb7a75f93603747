package shards

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func stampOf(st *syscall.Stat_t) stamp {
	return stamp{device: st.Dev, inode: st.Ino, size: st.Size, modified: st.Mtim, changed: st.Ctim}
}

// forgetPages has a file read from the disk and not from memory, as far as no job has it in use.
func forgetPages(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
