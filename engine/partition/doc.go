// Package partition cuts a graph into parts of equal weight with few edges between them.
//
// There are three algorithms, to be chosen by available memory: Multilevel holds the
// graph and several times its size, and cuts best; Streaming reads the graph in blocks
// and holds a few words per vertex; Random only counts. Each depends on the graph, the
// options and the seed alone, not on threads or timing. Parts are numbered so that runs
// of neighbouring parts are themselves good partitions into fewer parts.
//
// It does not read graph files and knows no shards: package build makes shards from its
// result.
package partition
