// Package engine runs one epoch of one plan on one node, and serves this node's
// shards to the others.
//
// It is told its work in plain terms and asks its peers through interfaces of its
// own: it knows neither Raft nor gossip nor QUIC, and it decides nothing that
// nodes must agree on. So far it has a name and this boundary.
package engine
