// Package exchange moves the results of a step between the nodes of a job: a node
// offers bytes under a tag, and others take them once they are there. On this it builds
// sums over all nodes, in an order that depends on no node and no clock, and small
// messages from each node to all.
package exchange
