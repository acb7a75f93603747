//go:build cuda

package device

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

// outOfMemory is CUDA_ERROR_OUT_OF_MEMORY.
const outOfMemory = 2

// take allocates memory of the GPU. If necessary, it evicts copies of CSRs.
func (d *Device) take(bytes int) (driver.Memory, error) {
	m, err := d.on.Alloc(bytes)
	if full, is := errors.AsType[*driver.Error](err); !is || full.Code != outOfMemory {
		return m, err
	}
	if d.finish() && d.mirrors.drop(d) {
		if m, again := d.on.Alloc(bytes); again == nil {
			return m, nil
		}
	}
	free, total, _ := d.on.Memory()
	return driver.Memory{}, fmt.Errorf("%d MiB of the GPU's memory are needed at once, and %d MiB of %d MiB are free: %w",
		blocks(bytes, 1<<20), free>>20, total>>20, err)
}

// least is the initial size of scratch, and alignment that of its pieces.
const (
	least     = 1 << 20
	alignment = 256
)

func aligned(bytes int) int { return (bytes + alignment - 1) &^ (alignment - 1) }

// scratch is temporary memory on the GPU for the kernels of one operation. When it grows,
// the old memory is kept until the next operation.
type scratch struct {
	memory driver.Memory
	used   int
	small  []driver.Memory
}

func (s *scratch) reset(d *Device) {
	s.used = 0
	if len(s.small) > 0 && d.finish() {
		s.free(d)
	}
}

// free frees the outgrown memory. The stream must be finished.
func (s *scratch) free(d *Device) {
	for _, m := range s.small {
		d.check(d.on.Free(m))
	}
	s.small = s.small[:0]
}

func (s *scratch) close(d *Device) {
	s.free(d)
	if s.memory.Len() > 0 {
		d.check(d.on.Free(s.memory))
	}
	*s = scratch{}
}

// room returns temporary memory for the current operation, or 0 after an error.
func (d *Device) room(bytes int) address {
	s := &d.scratch
	bytes = aligned(max(1, bytes))
	if d.err != nil {
		return 0
	}
	if s.used+bytes > s.memory.Len() {
		m, err := d.take(max(least, bytes, min(2*s.memory.Len(), s.memory.Len()+bytes)))
		if !d.check(err) {
			return 0
		}
		if s.memory.Len() > 0 {
			s.small = append(s.small, s.memory)
		}
		s.memory, s.used = m, 0
	}
	a := address(s.memory.Address()).plus(s.used)
	s.used += bytes
	return a
}

// lent returns the GPU address of a host list for the current operation.
func lent[T any](d *Device, list []T) address {
	data := bytesOf(list)
	if len(data) > loanBytes {
		a := d.room(len(data))
		d.send(a, data)
		return a
	}
	return d.lend(data)
}

func bytesOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(*new(T))))
}
