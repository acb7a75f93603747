// Package plan is the pure part of consensus: the state that all nodes agree on,
// the commands that change it, the rules for who votes, where shards go and who runs
// which job. Every function gives the same result on every node: no clock (times come in
// with commands), no randomness, no input or output, nothing that depends on the
// order of a map. It is not a store and knows nothing of Raft: package consensus
// brings it the committed commands in their order and keeps its snapshots.
package plan
