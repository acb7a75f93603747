// Package build converts a graph source into a folder of shard files within a memory
// bound.
//
// Edges go to disk in buckets and are read back one bucket at a time; features stream
// from the source straight to their final place. Otherwise it needs only a few bytes per
// vertex. The output depends on the source, the number of shards, the partitioner and the
// seed, but not on threads or memory.
//
// It neither parses formats (package engine/graph/read does) nor decides which shard a
// vertex belongs to (package engine/partition does).
package build
