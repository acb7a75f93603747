package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// The mesh's protocols in TLS protocol negotiation (ALPN). Those of members are followed by a
// number of the wire. That of newcomers never changes, so that versions of hopmesh which can't
// work together can still say so.
const (
	ALPNControl = "hopmesh-control"
	ALPNBulk    = "hopmesh-bulk"
	ALPNJoin    = "hopmesh-join/1"
)

// alpnAPI is the protocol of the API in TLS protocol negotiation. A connection for it is none for
// members or newcomers, nor the other way round.
const alpnAPI = "http/1.1"

// ServerTLS returns the configuration of a listener for members and newcomers. A member
// proves its identity, and allow may still refuse it. A newcomer shows no certificate
// and gets ALPNJoin, whatever else it offers: the caller must pass such connections
// only to the server of join requests.
//
// Members and newcomers that offer only versions of protocols that this node does not speak
// get what they offer first. The caller must serve them nothing, and tell them why: TLS would
// tell them nothing.
//
// A member without a valid certificate sees its dial succeed: the refusal comes with
// its first read.
func (i *Identity) ServerTLS(allow func(id string) error) *tls.Config {
	join := baseTLS(ALPNJoin)
	join.GetCertificate = i.serverCertificate
	members := baseTLS(append(offers(ALPNControl, i.wire), offers(ALPNBulk, i.wire)...)...)
	members.GetCertificate = i.serverCertificate
	// TLS's own check knows the authorities of the time when the listener was opened only.
	members.ClientAuth = tls.RequireAnyClientCert
	members.VerifyConnection = i.verifyPeer(x509.ExtKeyUsageClientAuth, "", allow)

	outer := baseTLS(append(slices.Clone(members.NextProtos), ALPNJoin)...)
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, ALPNJoin) {
			return join, nil
		}
		if first := unknown(hello.SupportedProtos, members.NextProtos); first != "" {
			conf := members
			if !strings.HasPrefix(first, ALPNControl) && !strings.HasPrefix(first, ALPNBulk) {
				conf = join
			}
			conf = conf.Clone()
			conf.NextProtos = []string{first}
			return conf, nil
		}
		return members, nil
	}
	return outer
}

// APITLS returns the configuration of a listener for clients of the API, who show no certificate:
// tokens say who they are.
func (i *Identity) APITLS() *tls.Config {
	c := baseTLS(alpnAPI)
	c.GetCertificate = i.serverCertificate
	return c
}

// ClientTLS returns the configuration for dialling a member by one of the members'
// protocols, in the highest version that both speak. The member must be wantID, or any node with a certificate of this mesh if
// wantID is empty. allow may still refuse it.
func (i *Identity) ClientTLS(alpn, wantID string, allow func(id string) error) *tls.Config {
	c := baseTLS(offers(alpn, i.wire)...)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return i.shown(), nil
	}
	// TLS's own check needs the name that it also sends in the clear. verifyPeer checks
	// everything instead, and no observer learns which node this one contacts.
	c.InsecureSkipVerify = true
	c.VerifyConnection = i.verifyPeer(x509.ExtKeyUsageServerAuth, wantID, allow)
	return c
}

// unknown returns the first protocol of hopmesh that is offered, if none of those offered is
// spoken.
func unknown(offered, spoken []string) (first string) {
	for _, p := range offered {
		if slices.Contains(spoken, p) {
			return ""
		}
		if _, number := Protocol(p); number > 0 && first == "" {
			first = p
		}
	}
	return first
}

// shown returns what this node shows in a handshake.
func (i *Identity) shown() *tls.Certificate {
	c, t := i.current.Load(), i.trust.Load()
	issuer := t.newest
	if t.former != nil && c.issuer == t.former.hash {
		issuer = t.former
	}
	return &tls.Certificate{Certificate: t.chain(c.leaf.Raw, issuer), PrivateKey: c.key, Leaf: c.leaf}
}

func (i *Identity) serverCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return i.shown(), nil
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
		id, err := i.trust.Load().verify(cs.PeerCertificates, use, i.Now())
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
