// Package shards keeps this node's shard files in the state that the plan wants. It
// fetches missing files, serves them to other nodes, and removes those that nobody wants.
//
// It decides nothing: the plan assigns shards to nodes, and the keeper reports its files
// to the leader. A file under its final name is complete and was verified once;
// incomplete files have other names. The package does not interpret the content of
// shards.
package shards
