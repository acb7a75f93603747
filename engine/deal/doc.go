// Package deal assigns the seed vertices of a step to nodes. A Dealer is a pure
// function of what all nodes of a run know, so each node can compute the assignment of
// any other.
package deal
