// Package api is the node's HTTP API: its types, which are exactly what the command line
// prints with --json, its client, and its handler over a Backend. It makes no decisions,
// keeps no state, and does not depend on gossip, Raft or QUIC.
package api
