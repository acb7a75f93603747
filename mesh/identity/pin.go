package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
)

// JoinTLS returns the configuration of a newcomer, which knows only the digest in its
// token: the peer must show a certificate of that authority, or of its successor. The newcomer's clock may
// be wrong, so the validity period of certificates is not checked. The mesh checks the
// clock itself and returns a clearer error than a handshake.
func JoinTLS(caHash [sha256.Size]byte) *tls.Config {
	c := ProbeTLS()
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		if cs.NegotiatedProtocol != ALPNJoin {
			return ErrProtocol
		}
		t, err := pinned(cs.PeerCertificates, caHash)
		if err != nil {
			return err
		}
		_, err = t.verify(cs.PeerCertificates, x509.ExtKeyUsageServerAuth, cs.PeerCertificates[0].NotAfter)
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
