//go:build cuda

// Package driver wraps the NVIDIA driver: the devices of this machine, and memory,
// streams, kernels and chains of kernels on one of them. It is the only package that uses
// gorgonia.org/cu, and exposes none of its types; it calls what cu lacks directly. It
// does not know tensors or particular kernels.
//
// The driver's library is opened when a device is first used (shim.c), so a program with
// this package also runs on machines without it. HOPMESH_CUDA=off turns GPUs off, and
// HOPMESH_LIBCUDA is the path of another library. cuBLAS is opened in the same way if
// HOPMESH_CUBLAS requests it; it is optional.
//
// A driver's call needs a thread with the device's context. So a Device has one goroutine
// with its own thread, all calls are methods of Thread, and a whole training step is one
// function passed to Device.Do.
//
// Errors name the call and NVIDIA's name of the result. A kernel's fault makes its device
// unusable, and no other can be opened by this process; such errors match ErrLost.
package driver
