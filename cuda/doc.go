// Package cuda is the tensor operations on a GPU, and the answer to which device
// a node computes on.
//
// It is never needed: whatever runs on a GPU also runs on the processor. Without
// build tag cuda it knows no driver; with it, it looks for GPUs, but has no
// operations for them yet. So it answers "cpu" in both, and says why.
package cuda
