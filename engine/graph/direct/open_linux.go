package direct

import (
	"os"

	"golang.org/x/sys/unix"
)

func open(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// inHugePages asks for huge pages; failure is harmless.
func inHugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
