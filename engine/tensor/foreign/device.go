// Package foreign is a device whose memory seems not to be the host's, for tests of what
// uses such ones: it computes on the processor, to the same bits, but the addresses of its
// matrices can't be followed, what it is given of the host's memory it does not take for its
// own, and it can be told to fail.
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

// far is added to addresses: no process has memory there.
const far = 1 << 52

// ErrFull is how an arena is refused beyond what the device has.
var ErrFull = errors.New("foreign: out of memory")

// A Device is the processor at a distance.
type Device struct {
	cpu    *cpu.Device
	err    error
	done   int   // operations
	last   int   // the one at which it fails
	fails  error // how it does
	memory *memory
	made   func(lane *Device)
	late   []copying        // what was brought and no operation has waited for
	copies map[uint64]*kept // of CSRs, by their stamps
	order  []uint64         // of stamps, from the oldest kept on
	parts  []tensor.Part
	ending tensor.Epilogue

	answers answers
}

var _ tensor.Foreign = (*Device)(nil)

// New makes one of so many threads.
func New(threads int) *Device {
	return &Device{cpu: cpu.New(threads), last: math.MaxInt, memory: &memory{total: 1 << 40}, copies: map[uint64]*kept{}}
}

// memory is what lanes have together.
type memory struct {
	total uint64 // bytes that there are
	taken atomic.Uint64
}

// FailAt has the device fail at its operation n from now on, counted from 1.
func (d *Device) FailAt(n int, err error) { d.last, d.fails = d.done+n, err }

// Operations counts those that were asked for.
func (d *Device) Operations() int { return d.done }

// Limit is how many bytes its arenas may hold.
func (d *Device) Limit(bytes uint64) { d.memory.total = bytes }

// Free is what can still be had of the device's memory: nothing of one that has failed.
func (d *Device) Free() (free, total uint64) {
	if d.err != nil {
		return 0, 0
	}
	total = d.memory.total
	return total - min(d.memory.taken.Load(), total), total
}

// Name is as tensor.Device says.
func (d *Device) Name() string { return "foreign " + d.cpu.Name() }

// Type is as tensor.Device says.
func (d *Device) Type() tensor.Type { return d.cpu.Type() }

// Close is as tensor.Device says.
func (d *Device) Close() { d.cpu.Close() }

// SetBF16 has the numbers of products rounded.
func (d *Device) SetBF16(on bool) { d.cpu.SetBF16(on) }

// Err is as tensor.Foreign says.
func (d *Device) Err() error { return d.err }

// works says whether to do an operation.
func (d *Device) works() bool {
	if d.done++; d.done == d.last {
		d.err = d.fails
	}
	if len(d.late) > 0 {
		d.late = arrive(d.late)
	}
	return d.err == nil
}

// NewArena is as tensor.Device says.
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

// at is a matrix elsewhere.
func at(m tensor.Matrix, base uintptr) tensor.Matrix {
	return tensor.Over(m.Type, m.Rows, m.Cols, m.Stride, *(*unsafe.Pointer)(unsafe.Pointer(&base)))
}

// near is where a matrix of the device lies.
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

// nearEnd is near of an epilogue.
func (d *Device) nearEnd(e *tensor.Epilogue) *tensor.Epilogue {
	if e == nil {
		return nil
	}
	d.ending = *e
	d.ending.Bias = near(e.Bias)
	return &d.ending
}
