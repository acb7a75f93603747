package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// JoinTLS returns the configuration of a newcomer, which knows only the digest in its
// token: the peer must show a certificate of that authority. The newcomer's clock may
// be wrong, so the validity period of certificates is not checked. The mesh checks the
// clock itself and returns a clearer error than a handshake.
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

// ProbeTLS returns the configuration for asking any node how it can be reached. Its
// answers are unproven, and it must be sent no secrets.
func ProbeTLS() *tls.Config {
	c := baseTLS(ALPNJoin)
	c.InsecureSkipVerify = true
	return c
}
