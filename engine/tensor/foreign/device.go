// Package foreign simulates a device whose memory is not the host's, to test code that
// uses such devices. It computes on the CPU with the same bits, but the addresses of its
// matrices can't be dereferenced, it rejects host memory as its own, and it can be made
// to fail.
package foreign

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// far is added to addresses, so that they are invalid in any process.
const far = 1 << 52

// ErrFull is returned if an arena exceeds the device's memory.
var ErrFull = errors.New("foreign: out of memory")

// A Device is the CPU with simulated separate memory.
type Device struct {
	cpu    *cpu.Device
	err    error
	done   int   // operations so far
	last   int   // the operation at which it fails
	fails  error // the error it fails with
	memory *memory
	made   func(lane *Device)
	late   []copying        // copies by Bring that no operation has waited for
	copies map[uint64]*kept // of CSRs, by their stamps
	order  []uint64         // stamps, the oldest kept first
	parts  []tensor.Part
	ending tensor.Epilogue

	answers answers
}

var _ tensor.Foreign = (*Device)(nil)

// New returns a device with this many threads.
func New(threads int) *Device {
	return &Device{cpu: cpu.New(threads), last: math.MaxInt, memory: &memory{total: 1 << 40}, copies: map[uint64]*kept{}}
}

// memory is shared by all lanes.
type memory struct {
	total uint64 // bytes of device memory
	taken atomic.Uint64
}

// FailAt makes the device fail at its n-th operation from now on, counted from 1.
func (d *Device) FailAt(n int, err error) { d.last, d.fails = d.done+n, err }

// Operations returns the number of operations requested.
func (d *Device) Operations() int { return d.done }

// Limit sets how many bytes its arenas may hold.
func (d *Device) Limit(bytes uint64) { d.memory.total = bytes }

// Free returns the free and total device memory; both are 0 after a failure.
func (d *Device) Free() (free, total uint64) {
	if d.err != nil {
		return 0, 0
	}
	total = d.memory.total
	return total - min(d.memory.taken.Load(), total), total
}

// Name implements tensor.Device.
func (d *Device) Name() string { return "foreign " + d.cpu.Name() }

// Type implements tensor.Device.
func (d *Device) Type() tensor.Type { return d.cpu.Type() }

// Close implements tensor.Device.
func (d *Device) Close() { d.cpu.Close() }

// SetBF16 sets whether operands of products are rounded to BF16.
func (d *Device) SetBF16(on bool) { d.cpu.SetBF16(on) }

// Err implements tensor.Foreign.
func (d *Device) Err() error { return d.err }

// works reports whether to run an operation.
func (d *Device) works() bool {
	if d.done++; d.done == d.last {
		d.err = d.fails
	}
	if len(d.late) > 0 {
		d.late = arrive(d.late)
	}
	return d.err == nil
}

// NewArena implements tensor.Device.
func (d *Device) NewArena(bytes int) (tensor.Arena, error) {
	if free, total := d.Free(); bytes > 0 && uint64(bytes) > free {
		return nil, fmt.Errorf("%w: %d bytes are asked for, and %d of %d are free", ErrFull, bytes, free, total)
	}
	a, err := d.cpu.NewArena(bytes)
	if err != nil {
		return nil, err
	}
	d.memory.taken.Add(uint64(a.Bytes()))
	return &arena{a, d}, nil
}

type arena struct {
	tensor.Arena
	device *Device
}

func (a *arena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	held := a.Bytes()
	m := a.Arena.Alloc(t, rows, cols)
	a.device.memory.taken.Add(uint64(a.Bytes() - held))
	return at(m, uintptr(m.Base())+far)
}

func (a *arena) Close() {
	a.device.memory.taken.Add(-uint64(a.Bytes()))
	a.Arena.Close()
}

// at returns a matrix at another address.
func at(m tensor.Matrix, base uintptr) tensor.Matrix {
	return tensor.Over(m.Type, m.Rows, m.Cols, m.Stride, *(*unsafe.Pointer)(unsafe.Pointer(&base)))
}

// near returns where a matrix of the device really lies.
func near(m tensor.Matrix) tensor.Matrix {
	base := uintptr(m.Base())
	switch {
	case m.None():
		return m
	case base < far:
		panic(fmt.Sprintf("foreign: a matrix of %d x %d is in the host's memory", m.Rows, m.Cols))
	}
	return at(m, base-far)
}

// nearEnd is near for an epilogue.
func (d *Device) nearEnd(e *tensor.Epilogue) *tensor.Epilogue {
	if e == nil {
		return nil
	}
	d.ending = *e
	d.ending.Bias = near(e.Bias)
	return &d.ending
}
