// Package cuda decides which device a node computes on, and opens it if that is a GPU.
//
// It is optional: everything that runs on a GPU also runs on the CPU. Without build tag
// cuda it knows no driver, and answers "cpu" with the reason. With the tag it looks for
// GPUs and opens them.
package cuda
