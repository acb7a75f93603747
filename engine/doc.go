// Package engine runs one epoch of one plan on one node, and serves this node's
// shards to the others.
//
// It is told its work in plain terms and asks its peers through interfaces of its
// own: it knows neither Raft nor gossip nor QUIC, and it decides nothing that
// nodes must agree on. It knows no command line either: its texts name settings and
// commands by keys in braces, as in "{lr} must be above 0", which node/wording replaces.
package engine
