//go:build cuda

package driver

// #include "blas.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// A Blas is NVIDIA's cuBLAS on one stream. Who wants it says so by HOPMESH_CUBLAS: on,
// or the path of its library. Nothing needs it.
type Blas struct {
	handle    unsafe.Pointer
	workspace Memory
	version   int
}

// ErrBlas is that cuBLAS was asked for and can't be used.
var ErrBlas = errors.New("no cuBLAS")

// Rounding is what becomes of a product's operands.
type Rounding int

// The numbers are cublasComputeType_t's.
const (
	Exact  Rounding = 68
	ToTF32 Rounding = 77
	ToBF16 Rounding = 75
)

// workspaceBytes is what cuBLAS may use beside its operands: as much as it takes by
// itself on large GPUs, so that it takes none.
const workspaceBytes = 32 << 20

var openBlas = sync.OnceValue(func() error {
	path := os.Getenv("HOPMESH_CUBLAS")
	paths := []string{path}
	if path == "on" {
		paths = []string{"libcublas.so.13", "libcublas.so.12"}
	}
	var first error
	for _, p := range paths {
		var problem *C.char
		name := C.CString(p)
		found := C.hopmesh_blas_open(name, &problem)
		C.free(unsafe.Pointer(name))
		if found != 0 {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("%w: %s", ErrBlas, C.GoString(problem))
		}
	}
	return first
})

// WantsBlas says whether cuBLAS is asked for.
func WantsBlas() bool {
	v := os.Getenv("HOPMESH_CUBLAS")
	return v != "" && v != "off"
}

// NewBlas makes cuBLAS ready on a stream.
func (t *Thread) NewBlas(s Stream) (*Blas, error) {
	if err := openBlas(); err != nil {
		return nil, err
	}
	w, err := t.Alloc(workspaceBytes)
	if err != nil {
		return nil, fmt.Errorf("cuBLAS: %w", err)
	}
	b := &Blas{workspace: w}
	var version C.int
	err = failedBlas("cublasCreate", C.hopmesh_blas_create(&b.handle, *(*C.CUstream)(unsafe.Pointer(&s.s)), C.CUdeviceptr(w.at), C.size_t(w.bytes)))
	if err == nil {
		err = failedBlas("cublasGetVersion", C.hopmesh_blas_version(b.handle, &version))
	}
	if err != nil {
		return nil, errors.Join(err, t.CloseBlas(b))
	}
	b.version = int(version)
	return b, nil
}

// Version is as people write it.
func (b *Blas) Version() string { return fmt.Sprintf("%d.%d", b.version/10000, b.version/100%100) }

// CloseBlas gives it back.
func (t *Thread) CloseBlas(b *Blas) error {
	var err error
	if b.handle != nil {
		err = failedBlas("cublasDestroy", C.hopmesh_blas_destroy(b.handle))
	}
	return errors.Join(err, t.Free(b.workspace))
}

// An Operand is a matrix by rows that are so many elements apart, of float32.
type Operand struct {
	At         Memory
	Stride     int
	Transposed bool
}

// Product is c = a*b (m x n, of k) in the order of its stream, with add c += a*b. It
// allocates nothing.
func (t *Thread) Product(blas *Blas, c, a, b Operand, m, n, k int, add bool, r Rounding) error {
	beta := C.float(0)
	if add {
		beta = 1
	}
	// Rows of ours are columns of cuBLAS's: it makes the transpose of c from those of b
	// and a.
	return failedBlas("cublasGemmEx", C.hopmesh_blas_product(blas.handle, flag(b.Transposed), flag(a.Transposed), C.int(n), C.int(m), C.int(k),
		C.CUdeviceptr(b.At.at), C.int(b.Stride), C.CUdeviceptr(a.At.at), C.int(a.Stride), beta, C.CUdeviceptr(c.At.at), C.int(c.Stride), C.int(r)))
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// failedBlas is what a call of cuBLAS returned as an error.
func failedBlas(call string, code C.int) error {
	switch code {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("%w: the library has no %s", ErrBlas, call)
	case 13, 14: // a kernel that failed, an inner error
		return fmt.Errorf("%w: %s: cuBLAS status %d", ErrLost, call, int(code))
	}
	return fmt.Errorf("%s: cuBLAS status %d", call, int(code))
}
