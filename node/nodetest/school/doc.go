// Package school stands in for the engine in tests of what nodes do around it: epochs
// take as long as they are told to, checkpoints are no more than what was told of the
// epochs, and nodes that share a job wait for each other as the engine's do. Nothing
// but tests imports it.
package school
