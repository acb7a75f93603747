// Package generate generates graphs: R-MAT graphs with the hubs of real networks, and
// stochastic block models with communities, classes and learnable features. They are for
// trials and measurements; a model's score on them says nothing about real graphs.
//
// Every random number is a hash of the seed, its purpose and its index. So any batch can
// be generated on its own, on any goroutine, and each pass over a graph yields the same
// bits; nothing as large as the edges or the features is ever in memory.
package generate
