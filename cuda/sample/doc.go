//go:build cuda

// Package sample samples blocks for seed vertices on a GPU, from a graph that lies in the
// GPU's memory as a whole. The blocks equal those of engine/sample, array by array.
//
// Within a batch the CPU waits for nothing: the actual counts stay in the GPU's memory,
// and kernels are launched for the capacity of the arrays. At the end the counts are
// read. If a hop did not fit, nothing of it was written; its capacity is increased, and
// the batch is sampled again.
//
// The package does not know tensors. One goroutine at a time uses a sampler, on a thread
// of the device (driver.Thread).
package sample
