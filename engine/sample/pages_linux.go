package sample

import "golang.org/x/sys/unix"

// large asks for huge pages; failure is harmless.
func large(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
