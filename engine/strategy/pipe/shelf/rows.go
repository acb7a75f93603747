package shelf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// Rows are bytes that are written and read again and again: in a file or, if the disk has no
// room for all of them from the beginning, in memory. One goroutine uses them.
type Rows struct {
	file  *os.File // nil: in memory
	bytes []byte
	full  error
}

// NewRows returns so many bytes, all 0. At most so many go to memory if the disk is full.
func NewRows(dir string, bytes int, most uint64) (*Rows, error) {
	r := &Rows{}
	if !Files(dir) {
		r.bytes = plain.Room(bytes)
		return r, nil
	}
	err := r.open(dir, bytes)
	switch {
	case err == nil:
		return r, nil
	case !unnamed.Full(err):
		return nil, errors.Join(fmt.Errorf("keep earlier rows in the folder %s: %w", dir, err), r.Close())
	case uint64(bytes) > most:
		return nil, errors.Join(fmt.Errorf("earlier rows take %s, for which there is no room in the folder %s, nor in memory: %w: free some space there, or allow more memory with {agent.memory}", budget.Format(uint64(bytes)), dir, err), r.Close())
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return &Rows{bytes: plain.Room(bytes), full: err}, nil
}

func (r *Rows) open(dir string, bytes int) (err error) {
	if r.file, err = unnamed.Create(dir, "rows-*.tmp"); err != nil {
		return err
	}
	// All of it is taken now, so that no later write finds the disk full.
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = allocate(r.file, bytes)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = r.fill(bytes)
	}
	if err == nil {
		r.bytes, err = unnamed.Map(r.file, bytes)
	}
	return err
}

// fill writes zeros, where a file system can't be asked for room.
func (r *Rows) fill(bytes int) error {
	zeros := make([]byte, min(bytes, 1<<20))
	for at := 0; at < bytes; at += len(zeros) {
		if _, err := r.file.WriteAt(zeros[:min(len(zeros), bytes-at)], int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// Held returns the bytes that are in memory.
func (r *Rows) Held() uint64 {
	if r == nil || r.file != nil {
		return 0
	}
	return uint64(len(r.bytes))
}

// Full returns why they are not in a file, if they should be.
func (r *Rows) Full() error {
	if r == nil {
		return nil
	}
	return r.full
}

// Bytes returns all bytes, for reading.
func (r *Rows) Bytes() []byte { return r.bytes }

// Write sets bytes from a place on.
func (r *Rows) Write(b []byte, at int) error {
	if r.file == nil {
		copy(r.bytes[at:], b)
		return nil
	}
	if _, err := r.file.WriteAt(b, int64(at)); err != nil {
		return fmt.Errorf("keep rows for later epochs: %w", err)
	}
	return nil
}

// Close gives all up. Nobody may read them any more.
func (r *Rows) Close() (err error) {
	if r == nil {
		return nil
	}
	if r.file != nil {
		if r.bytes != nil {
			err = unnamed.Unmap(r.bytes)
		}
		err = errors.Join(err, r.file.Close())
	}
	*r = Rows{}
	return err
}
