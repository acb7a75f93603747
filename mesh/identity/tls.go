package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The mesh's protocols in TLS protocol negotiation (ALPN).
const (
	ALPNControl = "hopmesh-control/1"
	ALPNBulk    = "hopmesh-bulk/1"
	ALPNJoin    = "hopmesh-join/1"
)

// ServerTLS returns the configuration of a listener for members and newcomers. A member
// proves its identity, and allow may still refuse it. A newcomer shows no certificate
// and gets ALPNJoin, whatever else it offers: the caller must pass such connections
// only to the server of join requests.
//
// A member without a valid certificate sees its dial succeed: the refusal comes with
// its first read.
func (i *Identity) ServerTLS(allow func(id string) error) *tls.Config {
	join := baseTLS(ALPNJoin)
	join.GetCertificate = i.serverCertificate
	members := baseTLS(ALPNControl, ALPNBulk)
	members.GetCertificate = i.serverCertificate
	members.ClientAuth = tls.RequireAndVerifyClientCert
	members.ClientCAs = i.authority.pool
	members.VerifyConnection = i.verifyPeer(x509.ExtKeyUsageClientAuth, "", allow)

	outer := baseTLS(ALPNControl, ALPNBulk, ALPNJoin)
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, ALPNJoin) {
			return join, nil
		}
		return members, nil
	}
	return outer
}

// ClientTLS returns the configuration for dialling a member by one of the members'
// protocols. The member must be wantID, or any node with a certificate of this mesh if
// wantID is empty. allow may still refuse it.
func (i *Identity) ClientTLS(alpn, wantID string, allow func(id string) error) *tls.Config {
	c := baseTLS(alpn)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &i.current.Load().tls, nil
	}
	// TLS's own check needs the name that it also sends in the clear. verifyPeer checks
	// everything instead, and no observer learns which node this one contacts.
	c.InsecureSkipVerify = true
	c.VerifyConnection = i.verifyPeer(x509.ExtKeyUsageServerAuth, wantID, allow)
	return c
}

func (i *Identity) serverCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &i.current.Load().tls, nil
}

// verifyPeer returns a function for VerifyConnection, which unlike
// VerifyPeerCertificate cannot be skipped by resuming a session.
func (i *Identity) verifyPeer(use x509.ExtKeyUsage, wantID string, allow func(id string) error) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		switch {
		case cs.NegotiatedProtocol == "": // TLS accepts a peer that offers no protocol
			return ErrProtocol
		case len(cs.PeerCertificates) == 0:
			return fmt.Errorf("%w: there is none", ErrCertificate)
		}
		id, err := i.authority.verify(cs.PeerCertificates[0], use, time.Now())
		if err != nil {
			return err
		}
		if wantID != "" && id != wantID {
			return fmt.Errorf("%w: node %s instead of node %s", ErrWrongID, id, wantID)
		}
		return allow(id)
	}
}

func baseTLS(alpn ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: alpn,
		// A resumed session would outlive the certificate that opened it.
		SessionTicketsDisabled: true,
	}
}

// PeerID returns the node id in the peer's certificate. It is proven if the connection
// was made with ServerTLS for a members' protocol, or with ClientTLS.
func PeerID(cs tls.ConnectionState) (string, error) {
	if len(cs.PeerCertificates) == 0 {
		return "", fmt.Errorf("%w: there is none", ErrCertificate)
	}
	return nodeID(cs.PeerCertificates[0])
}

// PeerMeshID returns the mesh that the peer's certificate names, proven as PeerID is,
// or "" if it names none.
func PeerMeshID(cs tls.ConnectionState) string {
	if len(cs.PeerCertificates) == 0 {
		return ""
	}
	id, ok := strings.CutPrefix(cs.PeerCertificates[0].Issuer.CommonName, caNamePrefix)
	if !ok || !validID(id) {
		return ""
	}
	return id
}
