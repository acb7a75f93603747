package desk

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/budget"
)

// A Memory is shared by the daemon and a program, which may change any of it at any time.
// Nothing that is read from it is relied on, and nothing is read twice.
type Memory struct {
	ID   uint64
	Data []byte // only the run that made it uses it, until Close

	mu   sync.Mutex
	file *os.File // nil: it is closed
}

// Memory makes a memory of so many bytes, or a few more.
func (d *Desk) Memory(bytes uint64) (*Memory, error) {
	page := uint64(os.Getpagesize())
	if bytes > math.MaxInt64/2 {
		return nil, fmt.Errorf("share %d bytes with a program: that is more than any machine has", bytes)
	}
	bytes = (max(bytes, 1) + page - 1) / page * page
	if err := budget.Room(int(bytes)); err != nil {
		return nil, err
	}
	file, data, err := share(int(bytes))
	if err != nil {
		return nil, fmt.Errorf("share %s with a program: %w", budget.Format(bytes), err)
	}
	budget.Outside(len(data))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.memories++
	return &Memory{ID: d.memories, Data: data, file: file}, nil
}

// Close gives the memory back, as far as the program has too.
func (m *Memory) Close() {
	m.mu.Lock()
	file := m.file
	m.file = nil
	m.mu.Unlock()
	if file == nil {
		return
	}
	budget.Outside(-len(m.Data))
	unshare(m.Data)
	m.Data = nil
	_ = file.Close() // nothing is written by it
}

// ErrClosed is the error of a memory whose run is over.
var ErrClosed = errors.New("the memory has been given back")

// File returns a new descriptor of the memory, and its size.
func (m *Memory) File() (file *os.File, bytes uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil, 0, ErrClosed
	}
	if file, err = again(m.file); err != nil {
		return nil, 0, fmt.Errorf("open memory for a program once more: %w", err)
	}
	return file, uint64(len(m.Data)), nil
}

// Closed reports whether it is given back.
func (m *Memory) Closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file == nil
}

// Of returns the bytes of a region, which must lie in this memory.
func (m *Memory) Of(r *Region) ([]byte, error) {
	switch {
	case m == nil || r.Memory != m.ID:
		return nil, fmt.Errorf("the region lies in memory %d, which is not the one that room was given in last", r.Memory)
	case r.Offset%Align != 0:
		return nil, fmt.Errorf("the region begins at byte %d, which is no multiple of %d", r.Offset, Align)
	case r.Bytes > uint64(len(m.Data)) || r.Offset > uint64(len(m.Data))-r.Bytes:
		return nil, fmt.Errorf("the region of %d bytes from byte %d on goes beyond its memory of %d bytes", r.Bytes, r.Offset, len(m.Data))
	}
	return m.Data[r.Offset:][:r.Bytes], nil
}

// Numbers returns memory as numbers. It must be aligned, and hold a whole number of them.
func Numbers[T int32 | int64 | float32 | float64](b []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}
