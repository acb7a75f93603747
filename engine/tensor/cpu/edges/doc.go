// Package edges implements the kernels along edges: aggregations and attention.
//
// Work is divided by rows and edges into chunks that depend only on the graph and the
// widths, and each output row is summed by one worker in the order of its entries: so
// results do not depend on the number of threads.
package edges
