// Package mesh is one UDP socket: who is alive, who they provably are, and
// streams to them.
//
// Gossip (Serf) travels as raw packets beside QUIC on the same socket;
// everything else travels inside QUIC, over two connections a peer: control for
// gossip's streams, Raft and calls, bulk for what is large. Peers are addressed
// by node id, proven by certificate, never by address.
//
// The package knows nothing of Raft, of the plan or of training: a stream
// carries a kind and a generation, and what they mean is its users' affair. It
// does not decide who is a member; it asks (Config.Allow, Config.Admit).
package mesh
