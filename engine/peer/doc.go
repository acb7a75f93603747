// Package peer is a run's view of the other nodes that share it: who they are and which
// shards they own (Work, Layout), how to ask them (Peers, Query) and the traffic
// (Tally).
//
// It knows no network and no plan: node provides both. Package loopback does so inside
// one process, for tests.
package peer
