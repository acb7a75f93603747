//go:build cuda

package driver

/*
#cgo CFLAGS: -fvisibility=hidden
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl -lpthread
#include <cuda.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"os"
	"sync"
)

// open opens the driver's library. It returns an error if there is none. Paths are read
// here and not in C, so that the cache of go test takes them into account.
var open = sync.OnceValue(func() error {
	if v := os.Getenv("HOPMESH_CUDA"); v == "off" {
		C.hopmesh_cuda_use(nil)
		return ErrOff
	} else if v != "" {
		C.hopmesh_cuda_use(nil)
		return fmt.Errorf("HOPMESH_CUDA is %q: leave it out, or set it to off to turn GPUs off", v)
	}
	path := os.Getenv("HOPMESH_LIBCUDA")
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			C.hopmesh_cuda_use(nil)
			return fmt.Errorf("%w: HOPMESH_LIBCUDA: %w", ErrNoDriver, err)
		}
	}
	C.hopmesh_cuda_use(C.CString(path)) // in use until the program ends
	switch C.hopmesh_cuda_open() {
	case C.HOPMESH_CUDA_NO_LIBRARY:
		return fmt.Errorf("%w: %s", ErrNoDriver, C.GoString(C.hopmesh_cuda_problem()))
	case C.HOPMESH_CUDA_INIT_FAILED:
		return &Error{Call: "cuInit", Code: int(C.hopmesh_cuda_init_code())}
	}
	return nil
})
