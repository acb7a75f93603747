// Package generate makes graphs up: R-MAT graphs with hubs as real networks have
// them, and stochastic block models with communities, classes and features that a
// network can learn. They are for trying things out and for measuring; what a
// model scores on them says nothing about any real graph.
//
// Everything random is a hash of the seed, of what it is for and of its number.
// So any batch can be made on its own, on any goroutine, and each pass over a
// graph yields the same bits; nothing as large as the edges or the features is
// ever in memory.
package generate
