package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// JoinTLS is for a newcomer, which knows of the mesh no more than the digest in
// its token: the peer must show a certificate of that authority. The newcomer's
// clock may be wrong, which the mesh judges and can say better than a handshake,
// so certificates are not held against it.
func JoinTLS(caHash [sha256.Size]byte) *tls.Config {
	c := ProbeTLS()
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		if cs.NegotiatedProtocol != ALPNJoin {
			return ErrProtocol
		}
		if len(cs.PeerCertificates) != 2 {
			return fmt.Errorf("%w: %d of them instead of a node's and its authority's", ErrForeignMesh, len(cs.PeerCertificates))
		}
		leaf, ca := cs.PeerCertificates[0], cs.PeerCertificates[1]
		if hashKey(ca) != caHash {
			return ErrForeignMesh
		}
		a, err := newAuthority(ca)
		if err != nil {
			return err
		}
		_, err = a.verify(leaf, x509.ExtKeyUsageServerAuth, leaf.NotAfter)
		return err
	}
	return c
}

// ProbeTLS is for asking a node, whoever it is, how it can be reached. Nothing
// that it says is proven, and it must not be told anything.
func ProbeTLS() *tls.Config {
	c := baseTLS(ALPNJoin)
	c.InsecureSkipVerify = true
	return c
}
