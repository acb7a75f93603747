// Package plan is the pure part of consensus: the state that all nodes agree on, the
// commands that change it, and the rules for who votes, where shards go and who runs
// which job. Every function gives the same result on every node: it uses no clock
// (times come with commands), no randomness, no input or output, and nothing that
// depends on map order. It is not a store and does not depend on Raft: package
// consensus passes it the committed commands in order and keeps its snapshots.
package plan
