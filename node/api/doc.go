// Package api is the node's HTTP API: the types that cross it (which are exactly
// what the command line prints with --json), its client, and its handler over a
// Backend. It is not the node: it decides nothing, keeps nothing, and knows no
// gossip, no Raft and no QUIC.
package api
