// Package identity proves which node this is. It holds the mesh's certificate
// authority, this node's certificate, the gossip keys and join tokens, stores them on
// disk, and derives the TLS configurations from them.
//
// It opens no socket, does not read the plan and does not decide on membership: callers
// pass an allow function that accepts or refuses a peer with a valid certificate.
//
// On disk an identity is one directory, which is renamed into place so that a partly
// written one is never visible:
//
//	node.json     mesh id, node id, name, digests of these and of the reset key
//	ca.pem        the certificate of the mesh's authority; while another succeeds it, the
//	              new one's, the former's for the same key, and the former's own
//	ca.key        its key; only on nodes that may have to admit others
//	ca.next       the key of an authority that the plan may name
//	node.pem      this node's key and certificate in one file, so that a renewal
//	              replaces both or neither
//	reset.key     the key from which QUIC derives stateless resets
//	keyring.json  the gossip keys, the one in use first
//
// Beside it, DIR.pending holds a join request not yet answered, DIR.new a directory
// being written, and DIR.gone one being removed. The caller ensures that only one
// process at a time works on a directory.
package identity
