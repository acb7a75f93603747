// Package mesh connects the nodes over one UDP socket: it tracks which nodes are alive,
// proves their identity, and opens streams to them.
//
// Gossip (Serf) travels as raw packets beside QUIC on the same socket. Everything else
// travels inside QUIC, over two connections per peer: control for gossip's streams,
// Raft and calls, bulk for large transfers. Peers are addressed by node id and proven
// by certificate, never by address.
//
// The package does not depend on Raft, the plan or training: a stream carries a kind
// and a generation, whose meaning belongs to the callers. It does not decide who is a
// member; it asks Config.Allow and Config.Admit.
package mesh
