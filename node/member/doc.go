// Package member implements membership of a mesh: how a node gets in and leaves, its keys and
// its certificate, how it follows the plan and gossip, and, on the leader, who is admitted and
// removed. It opens the mesh and the consensus, which the other parts of a node use.
//
// It knows nothing of datasets or jobs: the node wires those to the same mesh and plan.
package member
