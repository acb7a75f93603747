// Package lead carries orders to the leader of a mesh and runs the leader's rounds.
//
// An order is an operation that changes the plan, so only the leader may run it. Each
// part of a node registers its orders with their types, once; a node that does not lead
// forwards them over the mesh. Rounds call the steps by which the leader, again and again,
// brings the plan in line with the nodes that are there. Absences and Apart are what a
// leader knows in its term: which nodes are silent, and which can't reach each other.
//
// It knows neither members nor datasets nor jobs beyond what the plan says of them: what
// an order or a step does belongs to the part that registers it.
package lead
