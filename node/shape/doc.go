// Package shape runs nodes on this machine behind links of a chosen rate and delay, each
// with a fixed share of the CPUs. It serves to measure what a network costs on a single
// machine, where nodes that share cores hide each other's waiting.
//
// With root on Linux each node has its own network namespace, a token bucket in both
// directions of its link, and a control group for its share. Otherwise each node's socket
// is wrapped in a Conn, and a note lists what is missing.
package shape
