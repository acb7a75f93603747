//go:build cuda

// Package driver is the NVIDIA driver as this program uses it: what devices there
// are, and memory, streams, kernels and rows of kernels on one of them. It is the only
// place that knows gorgonia.org/cu, and shows none of its types; what cu lacks it
// calls itself. It knows no tensor: which kernels there are is not its matter.
//
// The driver's library is opened when a device is first asked for (shim.c), so a
// program with this package also runs where there is none. HOPMESH_CUDA=off turns
// GPUs off, and HOPMESH_LIBCUDA is the path of another library. cuBLAS is opened in the
// same way, if HOPMESH_CUBLAS asks for it: nothing needs it.
//
// A driver's call belongs to a thread with the device's context. So a Device has
// one goroutine with a thread of its own, all calls are methods of Thread, and a
// whole training step is one function handed to Device.Do.
//
// Errors name the call and NVIDIA's word for what it returned. A kernel's fault
// makes its device useless from then on: those errors are ErrLost.
package driver
