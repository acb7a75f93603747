// Package node builds the parts of a hopmesh node, connects them and runs them
// until its context ends.
//
// It is the only package that knows both the mesh and the consensus: it answers
// the mesh's questions (who may connect, who may join) from the plan, feeds what
// gossip sees to the leader, and offers the whole as the API's backend. It holds
// no protocol, no plan logic and no training of its own.
package node
