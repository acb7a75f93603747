// Package identity is who this node provably is: the mesh's certificate
// authority, this node's certificate, the keys of gossip, join tokens, where all
// of them lie on disk, and the TLS configurations that follow from them.
//
// It opens no socket, knows no plan and judges nobody's membership: whom a peer
// with a good certificate may be, its caller says through an allow function.
//
// On disk an identity is one directory that appears by one rename and is never
// seen half written:
//
//	node.json     mesh id, node id, name
//	ca.pem        the certificate of the mesh's authority
//	ca.key        its key; only on nodes that may have to admit others
//	node.pem      this node's key and certificate in one file, so that a renewal
//	              replaces both or neither
//	reset.key     what QUIC derives stateless resets from
//	keyring.json  the keys of gossip, the one in use first
//
// Beside it, DIR.pending holds a request to join that has no answer yet, DIR.new
// a directory being written, DIR.gone one being removed. The caller sees to it
// that one process at a time works on a directory.
package identity
