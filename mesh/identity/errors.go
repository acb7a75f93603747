package identity

import "errors"

var (
	// ErrNone means that a directory holds no identity.
	ErrNone = errors.New("there is no identity")
	// ErrExists means that a directory holds an identity already.
	ErrExists = errors.New("there is an identity already")
	// ErrDamaged means that a file of the identity is unusable.
	ErrDamaged = errors.New("damaged")
	// ErrForeignMesh means that a certificate comes from another authority.
	ErrForeignMesh = errors.New("it belongs to another mesh")
	// ErrWrongID means that a peer is not the node that was dialled.
	ErrWrongID = errors.New("another node answers there")
	// ErrExpired means that a certificate has expired by this node's clock.
	ErrExpired = errors.New("the certificate has expired")
	// ErrCertificate means that a certificate is not one that this package issues.
	ErrCertificate = errors.New("the certificate is not a node's")
	// ErrProtocol means that a peer offers no protocol of the mesh.
	ErrProtocol = errors.New("the peer offers no protocol of the mesh")
	// ErrRequest means that a signing request is unusable.
	ErrRequest = errors.New("the signing request is not usable")
	// ErrGrant means that the answer to a join request is unusable.
	ErrGrant = errors.New("the grant is not usable")
	// ErrNoCAKey means that this node does not hold the authority's key and cannot
	// sign.
	ErrNoCAKey = errors.New("this node does not hold the key of the mesh's authority")
	// ErrWrongCAKey means that a key is not that of this mesh's authority.
	ErrWrongCAKey = errors.New("the key is not that of the mesh's authority")
	// ErrSuccessor means that the authority this node trusts has not signed the key of a new one.
	ErrSuccessor = errors.New("the authority that this node knows does not vouch for the mesh's new one")
	// ErrGossipKeys means that a set of gossip keys is unusable.
	ErrGossipKeys = errors.New("the gossip keys are not usable")
	// ErrToken means that a join token is malformed.
	ErrToken = errors.New("the join token is not usable")
	// ErrAPIToken means that a token of the API is malformed.
	ErrAPIToken = errors.New("the API token is not usable")
)
