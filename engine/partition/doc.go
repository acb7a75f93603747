// Package partition cuts a graph into parts of equal weight with few edges between them.
//
// Three ways, by what memory allows: Multilevel holds the graph and several times its size, and cuts
// best; Streaming reads the graph in blocks and holds a few words for each vertex; Random only counts.
// All of them depend on the graph, the options and the seed alone, never on threads or timing, and number
// the parts so that runs of neighbouring parts are themselves good partitions into fewer parts.
//
// It is not a reader of graphs and knows no shards: package build makes those of the answer.
package partition
