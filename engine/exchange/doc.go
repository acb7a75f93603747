// Package exchange moves what a step makes between the nodes of a job: a node offers
// bytes under a tag, others take them when they are there. On this stand sums over
// all nodes, in an order that no node and no clock decides, and small messages from
// each to all.
package exchange
