//go:build cuda

package driver

/*
#include <cuda.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

var (
	// ErrOff means that GPUs were turned off.
	ErrOff = errors.New("GPUs are turned off by HOPMESH_CUDA=off")
	// ErrNoDriver means that the driver's library can't be opened.
	ErrNoDriver = errors.New("no NVIDIA driver on this machine")
	// ErrClosed means that a device was used after Close.
	ErrClosed = errors.New("the GPU is closed")
	// ErrLost means that the device's context is unusable: everything on the device is
	// lost, and every further call fails.
	ErrLost = errors.New("the GPU can't go on")
	// ErrArgument means that the arguments of a call are invalid.
	ErrArgument = errors.New("wrong use of the GPU")
)

// lost lists the codes after which every further call on the context fails: faults of
// kernels, broken memory and links, and a driver that is gone.
var lost = []int{
	C.CUDA_ERROR_DEINITIALIZED, C.CUDA_ERROR_ECC_UNCORRECTABLE, C.CUDA_ERROR_NVLINK_UNCORRECTABLE,
	C.CUDA_ERROR_ILLEGAL_ADDRESS, C.CUDA_ERROR_LAUNCH_TIMEOUT, C.CUDA_ERROR_CONTEXT_IS_DESTROYED, C.CUDA_ERROR_ASSERT,
	C.CUDA_ERROR_HARDWARE_STACK_ERROR, C.CUDA_ERROR_ILLEGAL_INSTRUCTION, C.CUDA_ERROR_MISALIGNED_ADDRESS,
	C.CUDA_ERROR_INVALID_ADDRESS_SPACE, C.CUDA_ERROR_INVALID_PC, C.CUDA_ERROR_LAUNCH_FAILED,
	721, // CUDA_ERROR_CONTAINED, added after CUDA 12.6
	C.CUDA_ERROR_MPS_RPC_FAILURE, C.CUDA_ERROR_MPS_CLIENT_TERMINATED, C.CUDA_ERROR_EXTERNAL_DEVICE, C.CUDA_ERROR_UNKNOWN,
}

// Error is an error that a call of the driver returned.
type Error struct {
	Call string // cuLaunchKernel
	Code int    // CUresult
}

// Name returns NVIDIA's name of the code. It asks the driver, which may know more names
// than our table, and uses the table if there is no driver.
func (e *Error) Name() string {
	name := C.hopmesh_cuda_name(C.int(e.Code))
	if name == nil && C.cuGetErrorName(C.CUresult(e.Code), &name) != C.CUDA_SUCCESS || name == nil {
		return "CUDA error " + strconv.Itoa(e.Code)
	}
	return C.GoString(name)
}

func (e *Error) Error() string {
	var words *C.char
	if C.cuGetErrorString(C.CUresult(e.Code), &words) != C.CUDA_SUCCESS || words == nil {
		return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name(), e.Code)
	}
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name(), e.Code, C.GoString(words))
}

// Is makes errors.Is match ErrLost for some codes.
func (e *Error) Is(target error) bool { return target == ErrLost && slices.Contains(lost, e.Code) }

// failed converts an error of cu to an Error; err is not nil.
func failed(call string, err error) error {
	// The type of cu's errors is not exported; its value is the code.
	if v := reflect.ValueOf(err); v.CanInt() {
		return &Error{Call: call, Code: int(v.Int())}
	}
	return fmt.Errorf("%s: %w", call, err)
}

// returned is like failed, for our own calls. It returns nil if r is success.
func returned(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return &Error{Call: call, Code: int(r)}
}
