// Package shelf keeps arrays that are made once and read in turns, such as the blocks of a
// pipeline, in a file without a name: the system drops their pages where memory is short and
// reads them again, so they are no memory of the process.
package shelf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// A Shelf has arrays in a file or, as far as the disk has no room, in memory. First all are
// put there, then it is mapped, and they are read until it is closed. One goroutine puts;
// many may read.
type Shelf struct {
	dir  string
	most uint64 // of bytes that memory has room for

	file    *os.File
	end     int // of what has been put
	written int // of it, so many bytes are in the file
	pending []byte
	chunks  []chunk // that follow, in memory
	held    uint64  // bytes of chunks
	full    error   // why they are not in the file; nil: because nobody wants a file

	mapping []byte
}

// A chunk is bytes in memory.
type chunk struct {
	at    int
	bytes []byte
}

// An Array says where some elements are.
type Array[T Element] struct{ at, n int }

// An Element is what arrays consist of.
type Element interface {
	~int32 | ~uint32 | ~int64 | ~float32
}

const (
	// line is what arrays are aligned to.
	line = 64
	// together is how many bytes of small arrays are written at once.
	together = 256 << 10
)

// Files reports whether files in a folder are no memory. There are none in "".
func Files(dir string) bool {
	if dir == "" {
		return false
	}
	_, memory, err := budget.Disk(dir)
	return err == nil && !memory
}

// New returns a shelf in a folder. If the disk is full, at most so many bytes go to memory;
// where files would be memory, all do.
func New(dir string, most uint64) *Shelf {
	if !Files(dir) {
		dir = ""
	}
	return &Shelf{dir: dir, most: most}
}

// Held returns the bytes that are in memory.
func (s *Shelf) Held() uint64 {
	if s == nil {
		return 0
	}
	return s.held
}

// Full returns why they are not in a file, if they should be.
func (s *Shelf) Full() error {
	if s == nil {
		return nil
	}
	return s.full
}

// Put adds a copy of an array.
func Put[T Element](s *Shelf, all []T) (Array[T], error) {
	a := Array[T]{at: s.end, n: len(all)}
	if len(all) == 0 {
		return a, nil
	}
	size := len(all) * int(unsafe.Sizeof(all[0]))
	return a, s.put(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), size))
}

func (s *Shelf) put(all []byte) error {
	s.end += (len(all) + line - 1) / line * line
	if s.dir == "" || s.full != nil {
		return s.hold(all)
	}
	if len(s.pending)+len(all) > together {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(all) < together && s.full == nil {
		s.pending = append(s.pending, all...)
		s.pending = append(s.pending, make([]byte, s.end-s.written-len(s.pending))...)
		return nil
	}
	return s.write(all)
}

// flush writes what is pending.
func (s *Shelf) flush() error {
	all := s.pending
	s.pending = s.pending[:0]
	if len(all) == 0 {
		return nil
	}
	return s.write(all)
}

// write appends bytes to the file. If it has no room for them, they and all others stay in
// memory.
func (s *Shelf) write(all []byte) (err error) {
	if s.full != nil {
		return s.hold(all)
	}
	if s.file == nil {
		s.file, err = unnamed.Create(s.dir, "blocks-*.tmp")
	}
	if err == nil {
		_, err = s.file.WriteAt(all, int64(s.written))
	}
	if err == nil {
		s.written += (len(all) + line - 1) / line * line
		return nil
	}
	if !unnamed.Full(err) {
		return fmt.Errorf("keep the edges of shards in the folder %s: %w", s.dir, err)
	}
	s.full = err
	return s.hold(all)
}

// hold keeps a copy of bytes in memory, behind all others.
func (s *Shelf) hold(all []byte) error {
	at := s.written
	if n := len(s.chunks); n > 0 {
		last := s.chunks[n-1]
		at = last.at + (len(last.bytes)+line-1)/line*line
	}
	c := chunk{at, plain.Room(len(all))}
	copy(c.bytes, all)
	s.chunks = append(s.chunks, c)
	s.held += uint64(len(all))
	if s.full != nil && s.held > s.most {
		return fmt.Errorf("the edges of shards have no room in the folder %s, nor in memory: %w: free some space there, or allow more memory with {agent.memory}", s.dir, s.full)
	}
	return nil
}

// Map ends putting: arrays can be read.
func (s *Shelf) Map() error {
	err := s.flush()
	s.pending = nil
	if s.file == nil {
		return err
	}
	if err == nil && s.written > 0 {
		info, wrong := s.file.Stat()
		if err = wrong; err == nil {
			s.mapping, err = unnamed.Map(s.file, int(min(int64(s.written), info.Size())))
		}
	}
	err = errors.Join(err, s.file.Close())
	s.file = nil
	return err
}

// Get returns an array.
func Get[T Element](s *Shelf, a Array[T]) []T {
	if a.n == 0 {
		return []T{}
	}
	size := a.n * int(unsafe.Sizeof(*new(T)))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s.bytes(a.at, size)))), a.n)
}

func (s *Shelf) bytes(at, size int) []byte {
	if at < s.written {
		return s.mapping[at:][:size:size]
	}
	i, is := slices.BinarySearchFunc(s.chunks, at, func(c chunk, at int) int { return cmp.Compare(c.at, at) })
	if !is {
		i--
	}
	return s.chunks[i].bytes[at-s.chunks[i].at:][:size:size]
}

// Close gives all up. Nobody may read it any more.
func (s *Shelf) Close() (err error) {
	if s == nil {
		return nil
	}
	if s.mapping != nil {
		err = unnamed.Unmap(s.mapping)
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	*s = Shelf{}
	return err
}
