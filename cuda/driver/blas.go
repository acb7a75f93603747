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

// Blas is NVIDIA's cuBLAS on one stream. It is optional. HOPMESH_CUBLAS requests it with
// "on" or the path of its library.
type Blas struct {
	handle    unsafe.Pointer
	workspace Memory
	version   int
}

// ErrBlas means that cuBLAS was requested but can't be used.
var ErrBlas = errors.New("no cuBLAS")

// Rounding is how the operands of a product are rounded.
type Rounding int

// The numbers are those of cublasComputeType_t.
const (
	Exact  Rounding = 68
	ToTF32 Rounding = 77
	ToBF16 Rounding = 75
)

// workspaceBytes is the size of cuBLAS's workspace. It is as large as its default on
// large GPUs, so that it allocates none itself.
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

// WantsBlas reports whether cuBLAS was requested.
func WantsBlas() bool {
	v := os.Getenv("HOPMESH_CUBLAS")
	return v != "" && v != "off"
}

// NewBlas initialises cuBLAS on a stream.
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

// Version returns the version as people write it.
func (b *Blas) Version() string { return fmt.Sprintf("%d.%d", b.version/10000, b.version/100%100) }

// CloseBlas frees a Blas.
func (t *Thread) CloseBlas(b *Blas) error {
	var err error
	if b.handle != nil {
		err = failedBlas("cublasDestroy", C.hopmesh_blas_destroy(b.handle))
	}
	return errors.Join(err, t.Free(b.workspace))
}

// Operand is a row-major float32 matrix with a stride in elements.
type Operand struct {
	At         Memory
	Stride     int
	Transposed bool
}

// Product computes c = a*b (m x n, of depth k) in the order of its stream; with add, c +=
// a*b. It allocates nothing.
func (t *Thread) Product(blas *Blas, c, a, b Operand, m, n, k int, add bool, r Rounding) error {
	beta := C.float(0)
	if add {
		beta = 1
	}
	// Our rows are cuBLAS's columns, so it computes the transpose of c from those of b
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

// failedBlas returns the error of a cuBLAS call.
func failedBlas(call string, code C.int) error {
	switch code {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("%w: the library has no %s", ErrBlas, call)
	case 13, 14: // a failed kernel, an internal error
		return fmt.Errorf("%w: %s: cuBLAS status %d", ErrLost, call, int(code))
	}
	return fmt.Errorf("%s: cuBLAS status %d", call, int(code))
}
