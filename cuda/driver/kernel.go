//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/ptx"
	"gorgonia.org/cu"
)

// cu hides its handles in structures of one field. Where it lacks a call they are
// read as what they are; this does not compile if cu changes them.
const (
	handle = unsafe.Sizeof(uintptr(0))
	_      = -(unsafe.Sizeof(cu.Function{}) ^ handle)
	_      = -(unsafe.Sizeof(cu.Stream{}) ^ handle)
	_      = -(unsafe.Sizeof(cu.Event{}) ^ handle)
)

// A Module is a PTX text that the driver has compiled for its device.
type Module struct {
	m       cu.Module
	kernels map[string][]int
}

// Load compiles a PTX text, which may take seconds where the driver has not kept
// the result of an earlier time.
func (t *Thread) Load(text string) (*Module, error) {
	kernels, err := ptx.Kernels(text)
	if err != nil {
		return nil, err
	}
	m, err := cu.LoadData(text)
	if err != nil {
		return nil, t.fail("cuModuleLoadData", err)
	}
	return &Module{m, kernels}, nil
}

// Unload gives the module back, with its kernels.
func (t *Thread) Unload(m *Module) error { return t.fail("cuModuleUnload", m.m.Unload()) }

// A Kernel is a function that the device runs. It belongs to its device's thread.
type Kernel struct {
	name  string
	f     cu.Function
	sizes []int
	// Arguments lie here during a launch; pointers point at them, one each.
	values   []uint64
	pointers []unsafe.Pointer
}

// widest is what cu copies of each argument, whatever its size.
const widest = 8

// Kernel finds a kernel of the module. sizes are the bytes of the arguments that
// it will be launched with: they must be those of the PTX, since nothing else
// compares them, and a kernel would read beside them.
func (t *Thread) Kernel(m *Module, name string, sizes ...int) (*Kernel, error) {
	has, known := m.kernels[name]
	switch {
	case !known:
		return nil, fmt.Errorf("%w: the module has no kernel %s", ErrArgument, name)
	case !slices.Equal(has, sizes):
		return nil, fmt.Errorf("%w: kernel %s takes parameters of %v bytes and would be given %v", ErrArgument, name, has, sizes)
	case slices.ContainsFunc(sizes, func(n int) bool { return n > widest }):
		return nil, fmt.Errorf("%w: kernel %s takes parameters of %v bytes; pass what is over %d by address", ErrArgument, name, has, widest)
	}
	f, err := m.m.Function(name)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, t.fail("cuModuleGetFunction", err))
	}
	k := &Kernel{name: name, f: f, sizes: has, values: make([]uint64, len(has)), pointers: make([]unsafe.Pointer, len(has))}
	for i := range k.values {
		k.pointers[i] = unsafe.Pointer(&k.values[i])
	}
	return k, nil
}

// AllowShared lets a launch of k ask for this much shared memory, which a kernel
// must do above 48 KB.
func (t *Thread) AllowShared(k *Kernel, bytes int) error {
	f := *(*C.CUfunction)(unsafe.Pointer(&k.f))
	err := t.note(returned("cuFuncSetAttribute", C.cuFuncSetAttribute(f, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes))))
	if err != nil {
		return fmt.Errorf("kernel %s: %d bytes of shared memory: %w", k.name, bytes, err)
	}
	return nil
}

// An Argument is a value for a kernel's parameter.
type Argument struct {
	bits  uint64
	bytes int
}

// Argument is where the memory is.
func (m Memory) Argument() Argument { return Argument{uint64(m.at), 8} }

// Int32 is an int of C.
func Int32(v int32) Argument { return Argument{uint64(uint32(v)), 4} }

// Int64 is a long long of C.
func Int64(v int64) Argument { return Argument{uint64(v), 8} }

// Float32 is a float of C.
func Float32(v float32) Argument { return Argument{uint64(math.Float32bits(v)), 4} }

// A Shape is how many run a kernel, and where.
type Shape struct {
	Grid, Block [3]int
	Shared      int // bytes of dynamic shared memory a block
	Stream      Stream
}

// Launch gives k to the shape's stream. It allocates nothing.
func (t *Thread) Launch(k *Kernel, s Shape, arguments ...Argument) error {
	if err := k.take(k.values, arguments); err != nil {
		return err
	}
	err := k.f.Launch(s.Grid[0], s.Grid[1], s.Grid[2], s.Block[0], s.Block[1], s.Block[2], s.Shared, s.Stream.s, k.pointers)
	if err != nil {
		return fmt.Errorf("kernel %s: %w", k.name, t.fail("cuLaunchKernel", err))
	}
	return nil
}

// take sets values to the arguments, which must be of the sizes that k has.
func (k *Kernel) take(values []uint64, arguments []Argument) error {
	if len(arguments) != len(k.sizes) {
		return fmt.Errorf("%w: kernel %s takes %d arguments and is given %d", ErrArgument, k.name, len(k.sizes), len(arguments))
	}
	for i, a := range arguments {
		if a.bytes != k.sizes[i] {
			return fmt.Errorf("%w: kernel %s: argument %d has %d bytes in place of %d", ErrArgument, k.name, i, a.bytes, k.sizes[i])
		}
		values[i] = a.bits
	}
	return nil
}
