package identity

import "errors"

var (
	// ErrNone says that a directory holds no identity.
	ErrNone = errors.New("there is no identity")
	// ErrExists says that a directory holds one already.
	ErrExists = errors.New("there is an identity already")
	// ErrDamaged says that a file of the identity cannot be used.
	ErrDamaged = errors.New("damaged")
	// ErrForeignMesh says that a certificate comes from another authority.
	ErrForeignMesh = errors.New("it belongs to another mesh")
	// ErrWrongID says that a peer is not the node that was dialled.
	ErrWrongID = errors.New("another node answers there")
	// ErrExpired says that a certificate has ended by this node's clock.
	ErrExpired = errors.New("the certificate has expired")
	// ErrNotYetValid says that a certificate begins later by this node's clock.
	ErrNotYetValid = errors.New("the certificate is not valid yet")
	// ErrCertificate says that a certificate is not one that this package issues.
	ErrCertificate = errors.New("the certificate is not a node's")
	// ErrProtocol says that a peer offers no protocol of the mesh.
	ErrProtocol = errors.New("the peer offers no protocol of the mesh")
	// ErrRequest says that a signing request cannot be used.
	ErrRequest = errors.New("the signing request is not usable")
	// ErrGrant says that the answer to a join cannot be used.
	ErrGrant = errors.New("the grant is not usable")
	// ErrNoCAKey says that this node may not sign.
	ErrNoCAKey = errors.New("this node does not hold the key of the mesh's authority")
	// ErrWrongCAKey says that a key is not that of this mesh's authority.
	ErrWrongCAKey = errors.New("the key is not that of the mesh's authority")
	// ErrGossipKeys says that a set of gossip keys cannot be used.
	ErrGossipKeys = errors.New("the gossip keys are not usable")
	// ErrToken says that a join token was not copied whole.
	ErrToken = errors.New("the join token is not usable")
)
