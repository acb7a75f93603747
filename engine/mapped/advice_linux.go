package mapped

import "golang.org/x/sys/unix"

// fetch has the disk read a piece that will soon be needed.
func fetch(piece []byte) {
	if len(piece) > 0 {
		_ = unix.Madvise(piece, unix.MADV_WILLNEED)
	}
}
