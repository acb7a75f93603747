// Package overflow keeps in files what memory is too small for.
package overflow

import (
	"errors"
	"fmt"
	"os"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// A File holds what memory is too small for. It has no name, so that it is gone when it is
// closed or the process ends. It is written as a file and read through a mapping, so that a
// full disk is an error and not a signal.
type File struct {
	f       *os.File
	mapping []byte
}

// New makes a file of so many bytes, all 0, in a folder.
func New(dir string, bytes int64) (f *File, err error) {
	f = new(File)
	if err := f.open(dir, bytes); err != nil {
		return nil, errors.Join(fmt.Errorf("make a file of %s for what memory is too small for: %w: free some space there, or allow more memory with {agent.memory}", budget.Format(uint64(bytes)), err), f.Close())
	}
	return f, nil
}

func (f *File) open(dir string, bytes int64) (err error) {
	if f.f, err = unnamed.Create(dir, "rows-*.tmp"); err != nil {
		return err
	}
	if err := f.f.Truncate(bytes); err != nil || bytes == 0 {
		return err
	}
	f.mapping, err = unnamed.Map(f.f, int(bytes))
	return err
}

// Bytes returns all bytes, for reading.
func (f *File) Bytes() []byte { return f.mapping }

// Write sets bytes from a place on.
func (f *File) Write(b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := f.f.WriteAt(b, at); err != nil {
		return fmt.Errorf("write what memory is too small for: %w: free some space in the folder of the job, or allow more memory with {agent.memory}", err)
	}
	return nil
}

// Close gives the file up. Nobody may read it any more.
func (f *File) Close() (err error) {
	if f == nil {
		return nil
	}
	if f.mapping != nil {
		err = unnamed.Unmap(f.mapping)
	}
	if f.f != nil {
		err = errors.Join(err, f.f.Close())
	}
	*f = File{}
	return err
}
