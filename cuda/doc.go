// Package cuda is the tensor operations on a GPU, and the answer to which device
// a node computes on.
//
// It is never needed: whatever runs on a GPU also runs on the processor. This
// build has no GPU operations, so it answers "cpu", and says why.
package cuda
