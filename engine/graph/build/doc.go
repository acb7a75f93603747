// Package build turns a source of a graph into a folder of shard files, within a
// bound of memory.
//
// Edges go to disk in buckets and come back one bucket at a time; features stream
// from the source straight into their places. Everything beside that is a few bytes
// a vertex. What comes out depends on the source, the number of shards, the
// partitioner and the seed, and neither on threads nor on memory.
//
// It neither parses formats nor decides which shard a vertex belongs to: the one is
// engine/graph/read's, the other engine/partition's.
package build
