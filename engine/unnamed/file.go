// Package unnamed makes files without names, for what memory is too small for: a file is gone
// when nobody has it open or mapped any more, however the process ends. Files are written as
// files and read through mappings, so that a full disk is an error and not a signal.
package unnamed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Create makes an empty file in a folder. Its name, while it has one, follows a pattern of
// os.CreateTemp.
func Create(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Map maps so many bytes from the beginning of a file, for reading. The mapping outlives the
// open file. It returns an error if the file is shorter: who reads beyond its end is killed.
func Map(f *os.File, bytes int) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < int64(bytes) {
		return nil, fmt.Errorf("map %d bytes of a file that has %d", bytes, info.Size())
	}
	b, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	return b, nil
}

// Unmap gives a mapping up, which nobody may read any more.
func Unmap(b []byte) error { return unix.Munmap(b) }

// Full reports whether an error says that there is no room for what was written.
func Full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
