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

// cu hides its handles in structures of one field. For calls that cu lacks, the field is
// read directly; this does not compile if cu changes them.
const (
	handle = unsafe.Sizeof(uintptr(0))
	_      = -(unsafe.Sizeof(cu.Function{}) ^ handle)
	_      = -(unsafe.Sizeof(cu.Stream{}) ^ handle)
	_      = -(unsafe.Sizeof(cu.Event{}) ^ handle)
)

// Module is a PTX text that the driver has compiled for its device.
type Module struct {
	m       cu.Module
	kernels map[string][]int
}

// Load compiles a PTX text. That may take seconds unless the driver has cached the
// result.
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

// Unload frees the module and its kernels.
func (t *Thread) Unload(m *Module) error { return t.fail("cuModuleUnload", m.m.Unload()) }

// Kernel is a function that the device runs. Only its device's thread may use it.
type Kernel struct {
	name  string
	f     cu.Function
	sizes []int
	// The arguments are stored here during a launch, with one pointer to each.
	values   []uint64
	pointers []unsafe.Pointer
}

// widest is the number of bytes that cu copies of each argument, whatever its size.
const widest = 8

// Kernel returns a kernel of the module. sizes are the bytes of the arguments with which
// it will be launched. They must be those of the PTX: nothing else checks them, and a
// kernel would read out of bounds.
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

// AllowShared permits launches of k with this much shared memory, which is necessary
// above 48 KB.
func (t *Thread) AllowShared(k *Kernel, bytes int) error {
	f := *(*C.CUfunction)(unsafe.Pointer(&k.f))
	err := t.note(returned("cuFuncSetAttribute", C.cuFuncSetAttribute(f, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes))))
	if err != nil {
		return fmt.Errorf("kernel %s: %d bytes of shared memory: %w", k.name, bytes, err)
	}
	return nil
}

// Argument is a value for a kernel's parameter.
type Argument struct {
	bits  uint64
	bytes int
}

// Argument returns the memory's address as an argument.
func (m Memory) Argument() Argument { return Argument{uint64(m.at), 8} }

// Int32 returns a C int as an argument.
func Int32(v int32) Argument { return Argument{uint64(uint32(v)), 4} }

// Int64 returns a C long long as an argument.
func Int64(v int64) Argument { return Argument{uint64(v), 8} }

// Float32 returns a C float as an argument.
func Float32(v float32) Argument { return Argument{uint64(math.Float32bits(v)), 4} }

// Shape is the size of a launch and its stream.
type Shape struct {
	Grid, Block [3]int
	Shared      int // bytes of dynamic shared memory per block
	Stream      Stream
}

// Launch submits k to the shape's stream. It allocates nothing.
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

// take copies the arguments to values. It returns an error unless their sizes are those
// of k.
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
