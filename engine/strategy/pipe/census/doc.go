// Package census counts what time and memory of a pipeline depend on in a graph: of each
// shard, and of each shape that a job may have. A node counts the shards whose edges it has,
// and the nodes tell each other.
package census
