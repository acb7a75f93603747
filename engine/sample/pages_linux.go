package sample

import "golang.org/x/sys/unix"

// large asks for large pages; small ones do as well.
func large(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
