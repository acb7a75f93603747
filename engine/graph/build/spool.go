package build

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A spool is an unnamed file in the scratch folder: nothing of it is left, however the
// process ends.
type spool struct {
	file *os.File
	disk disk
	end  atomic.Int64
}

// A disk is a folder being written to, for the error message when it is full.
type disk struct {
	folder string
	need   uint64 // bytes that the whole import writes there
}

// failed wraps the error of a write.
func (d disk) failed(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("the disk of %s is full: the import needs up to %s there: free some or choose another folder: %w", d.folder, inBytes(d.need), err)
	}
	return fmt.Errorf("write to %s: %w", d.folder, err)
}

func newSpool(d disk) (*spool, error) {
	file, err := os.CreateTemp(d.folder, ".spool-*")
	if err != nil {
		return nil, fmt.Errorf("make a scratch file in %s: %w", d.folder, err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("unlink a scratch file in %s: %w", d.folder, err), file.Close())
	}
	return &spool{file: file, disk: d}, nil
}

// close frees the disk space. It may be called on a spool that was never opened.
func (s *spool) close() {
	if s != nil {
		s.file.Close() // its bytes are no longer needed
	}
}

// append writes slices one after another at the end and returns their offset. It is safe
// for concurrent use.
func (s *spool) append(slices ...[]byte) (int64, error) {
	n := 0
	for _, b := range slices {
		n += len(b)
	}
	start := s.end.Add(int64(n)) - int64(n)
	at := start
	for _, b := range slices {
		if _, err := s.file.WriteAt(b, at); err != nil {
			return 0, s.disk.failed(err)
		}
		at += int64(len(b))
	}
	return start, nil
}

// restart discards the contents.
func (s *spool) restart() { s.end.Store(0) }

func (s *spool) read(b []byte, at int64) error {
	if _, err := s.file.ReadAt(b, at); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read a scratch file in %s again: %w", s.disk.folder, err)
	}
	return nil
}

// A fixed is an element type whose memory layout is that of the file.
type fixed interface {
	uint8 | uint16 | uint32 | uint64 | int32 | int64 | float32
}

// shrink returns the memory of records viewed as twice as many ids.
func shrink(s []uint64) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), 2*len(s))
}

// raw returns the bytes of a slice, in place.
func raw[T fixed](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
