// Package shape puts nodes on this machine behind links of a chosen rate and delay, each
// with a fixed share of the processors, so that what a network costs can be measured
// where there is none: nodes that share cores hide each other's waiting.
//
// With root on Linux a node has a network namespace of its own, its link a token bucket
// in both directions, and its share is a control group's. Without, each node's socket
// is wrapped in a Conn, and what can't be had is said in a note.
package shape
