//go:build cuda

// Package sample turns roots into blocks on a GPU: the same as engine/sample's, array
// by array, from a graph that lies in the GPU's memory whole.
//
// Within a batch the processor waits for nothing: how much there is of what stands in
// the GPU's memory, and kernels are launched for as much as there is room for. At the
// end the counts come back; if a hop did not fit, nothing of it was written, its room
// is made larger, and the batch is drawn anew.
//
// It knows no tensor. One goroutine at a time uses a sampler, on a thread of the device
// (driver.Thread).
package sample
