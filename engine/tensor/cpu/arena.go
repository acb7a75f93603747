package cpu

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	page      = 4 << 10
	huge      = 2 << 20 // slabs are a multiple of it, so that huge pages fit
	alignment = 128     // two cache lines, since they are fetched in pairs
)

// arena allocates from slabs in order. Slabs are kept until it is closed.
type arena struct {
	slabs [][]byte
	slab  int // the current slab
	used  int // bytes of it
	held  int
}

// NewArena implements tensor.Device.
func (d *Device) NewArena(bytes int) (tensor.Arena, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("an arena of %d bytes", bytes)
	}
	a := &arena{}
	if bytes > 0 {
		if err := a.grow(bytes, d.pool.Size()); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// grow adds a slab of so many bytes and touches it on several goroutines: the first touch
// of a page costs microseconds.
func (a *arena) grow(bytes, threads int) error {
	bytes = (bytes + huge - 1) &^ (huge - 1)
	slab, err := reserve(bytes)
	if err != nil {
		return &budget.Exhausted{Wants: uint64(bytes), Holds: uint64(a.held), Err: err}
	}
	var touched sync.WaitGroup
	each := (bytes/threads + huge - 1) &^ (huge - 1)
	for start := 0; start < bytes; start += each {
		touched.Go(func() {
			for at := start; at < min(start+each, bytes); at += page {
				slab[at] = 0
			}
		})
	}
	touched.Wait()
	a.slabs, a.held = append(a.slabs, slab), a.held+bytes
	return nil
}

// Alloc implements tensor.Arena. If it gets no memory, it panics with a
// *budget.Exhausted, which budget.Caught makes an error of the run.
func (a *arena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	bytes := max(alignment, (rows*cols*t.Bytes()+alignment-1)&^(alignment-1))
	for a.slab < len(a.slabs) && a.used+bytes > len(a.slabs[a.slab]) {
		a.slab, a.used = a.slab+1, 0
	}
	if a.slab == len(a.slabs) {
		// Grow by at least half, so that growing is rare, unless there is no more than is
		// needed.
		more := min(a.held/2, budget.Spare())
		err := a.grow(max(bytes, more), 1)
		if err != nil && bytes < more {
			err = a.grow(bytes, 1)
		}
		if err != nil {
			panic(err)
		}
	}
	base := unsafe.Pointer(&a.slabs[a.slab][a.used])
	a.used += bytes
	return tensor.Over(t, rows, cols, cols, base)
}

// Reset implements tensor.Arena.
func (a *arena) Reset() { a.slab, a.used = 0, 0 }

// Bytes implements tensor.Arena.
func (a *arena) Bytes() int { return a.held }

// Close implements tensor.Arena. It invalidates all matrices of the arena.
func (a *arena) Close() {
	for _, s := range a.slabs {
		release(s)
	}
	*a = arena{}
}
