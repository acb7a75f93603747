// Package edges holds the kernels that follow edges: aggregations and attention.
//
// The work of an operation is cut by rows and edges into chunks that depend on the
// graph and the widths alone, and each output row is summed by one worker in the
// order of its entries: so the bits of a result depend on no number of threads.
package edges
