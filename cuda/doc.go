// Package cuda answers which device a node computes on, and opens it if that is a
// GPU.
//
// It is never needed: whatever runs on a GPU also runs on the processor. Without
// build tag cuda it knows no driver and answers "cpu", and says why; with it, it
// looks for GPUs, and opens them.
package cuda
