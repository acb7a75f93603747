package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func anyone(string) error { return nil }

// A meeting is what both ends of a handshake saw. The client has read a byte
// after it: in TLS 1.3 a client's handshake ends before the server has judged it.
type meeting struct {
	server, client       tls.ConnectionState
	serverErr, clientErr error
	handshakeErr         error // the client's, before the read
}

func (m meeting) err() error { return errors.Join(m.serverErr, m.clientErr) }

// shake makes a server and a client meet over a pipe.
func shake(serverTLS, clientTLS *tls.Config) meeting {
	a, b := net.Pipe()
	deadline := time.Now().Add(10 * time.Second)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline)
	var m meeting
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.Close()
		s := tls.Server(a, serverTLS)
		if m.serverErr = s.Handshake(); m.serverErr == nil {
			m.server = s.ConnectionState()
			_, m.serverErr = s.Write([]byte("!"))
		}
	}()
	c := tls.Client(b, clientTLS)
	if m.handshakeErr = c.Handshake(); m.handshakeErr != nil {
		m.clientErr = m.handshakeErr
	} else {
		m.client = c.ConnectionState()
		_, m.clientErr = io.ReadFull(c, make([]byte, 1))
	}
	_ = b.Close()
	<-done
	return m
}

// minted returns an identity like i that shows another certificate: change is
// applied to the template of a good one, and parent signs it.
func minted(t testing.TB, i *Identity, parent *x509.Certificate, signer ed25519.PrivateKey, change func(c *x509.Certificate)) *Identity {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serialNumber(),
		Subject:      pkix.Name{CommonName: i.ID()},
		DNSNames:     []string{i.ID()},
		NotBefore:    time.Now().Add(-backdate),
		NotAfter:     time.Now().Add(defaultLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	key := i.current.Load().key
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	c, err := newCredential(key, leaf, i.CAHash())
	must(t, err)
	other := &Identity{authorities: authorities{dir: i.dir}, name: i.name, id: i.id}
	other.trust.Store(i.trust.Load())
	other.current.Store(c)
	return other
}

func TestMembersMeet(t *testing.T) {
	a := found(t, Options{})
	b := admit(t, a)
	for _, alpn := range []string{ALPNControl, ALPNBulk} {
		for _, want := range []string{a.ID(), ""} {
			var asked []string
			allow := func(id string) error { asked = append(asked, id); return nil }
			m := shake(a.ServerTLS(anyone), b.ClientTLS(alpn, want, allow))
			must(t, m.err())
			if m.client.Version != tls.VersionTLS13 || m.client.NegotiatedProtocol != alpn+"/1" || m.server.NegotiatedProtocol != alpn+"/1" {
				t.Fatalf("met over %x with %q", m.client.Version, m.client.NegotiatedProtocol)
			}
			if m.server.ServerName != "" {
				t.Fatalf("the client named %q in the clear", m.server.ServerName)
			}
			if len(asked) != 1 || asked[0] != a.ID() {
				t.Fatalf("the client asked whether %v are allowed", asked)
			}
			for side, cs := range map[*Identity]tls.ConnectionState{b: m.server, a: m.client} {
				id, err := PeerID(cs)
				must(t, err)
				if id != side.ID() || PeerMeshID(cs) != a.MeshID() {
					t.Fatalf("peer %s of mesh %s, want %s of %s", id, PeerMeshID(cs), side.ID(), a.MeshID())
				}
			}
		}
	}
}

// forgeries are the certificates that no member may accept, by what is wrong.
func forgeries(t testing.TB, mesh, member *Identity, use x509.ExtKeyUsage) map[string]struct {
	with *Identity
	want error
} {
	t.Helper()
	ca, key := mesh.trust.Load().newest.cert, mesh.caKey
	foreign := found(t, Options{})
	// An authority that calls itself as this mesh's does.
	_, twinKey, err := createAuthority(newID(), 0, time.Now())
	must(t, err)
	// A node that signs as if it were an authority.
	node := mesh.current.Load()
	wrongUse := x509.ExtKeyUsageServerAuth
	if use == wrongUse {
		wrongUse = x509.ExtKeyUsageClientAuth
	}
	type forgery = struct {
		with *Identity
		want error
	}
	made := func(change func(c *x509.Certificate), want error) forgery {
		return forgery{minted(t, member, ca, key, change), want}
	}
	twin := *ca
	twin.PublicKey = twinKey.Public()
	return map[string]forgery{
		"another mesh's": {admit(t, foreign), ErrForeignMesh},
		"a twin's":       {minted(t, member, &twin, twinKey, nil), ErrForeignMesh},
		"a node's":       {minted(t, member, node.leaf, node.key, nil), ErrForeignMesh},
		"expired":        made(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, ErrExpired),
		"future, expired": made(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(time.Minute)
		}, ErrExpired),
		"for another use": made(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{wrongUse} }, ErrCertificate),
		"without an id":   made(func(c *x509.Certificate) { c.DNSNames = nil }, ErrCertificate),
		"with two ids":    made(func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, newID()) }, ErrCertificate),
		"a host's":        made(func(c *x509.Certificate) { c.DNSNames = []string{"example.com"} }, ErrCertificate),
		"of two minds":    made(func(c *x509.Certificate) { c.Subject.CommonName = newID() }, ErrCertificate),
		"an authority's": made(func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
		}, ErrCertificate),
	}
}

func TestClientRefusesCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := found(t, Options{})
		b := admit(t, a)
		for what, f := range forgeries(t, a, b, x509.ExtKeyUsageServerAuth) {
			for _, want := range []string{f.with.ID(), ""} {
				m := shake(f.with.ServerTLS(anyone), a.ClientTLS(ALPNControl, want, anyone))
				if !errors.Is(m.clientErr, f.want) {
					t.Errorf("%s certificate, dialling %q: got %v, want %v", what, want, m.clientErr, f.want)
				}
				if m.serverErr == nil {
					t.Errorf("%s certificate: the server thinks that it was accepted", what)
				}
			}
		}
	})
}

func TestServerRefusesCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := found(t, Options{})
		b := admit(t, a)
		for what, f := range forgeries(t, a, b, x509.ExtKeyUsageClientAuth) {
			asked := false
			config := f.with.ClientTLS(ALPNControl, "", anyone)
			config.VerifyConnection = nil // it does not care whom it meets
			m := shake(a.ServerTLS(func(string) error { asked = true; return nil }), config)
			if m.serverErr == nil || m.clientErr == nil {
				t.Errorf("%s certificate: let in: %v, %v", what, m.serverErr, m.clientErr)
			}
			if asked {
				t.Errorf("%s certificate: it was asked whether its id is allowed", what)
			}
			if !errors.Is(m.serverErr, f.want) {
				t.Errorf("%s certificate: the server says %v, want %v", what, m.serverErr, f.want)
			}
			if !strings.Contains(m.clientErr.Error(), "bad certificate") {
				t.Errorf("%s certificate: the client gets %v", what, m.clientErr)
			}
		}
	})
}

func TestServerRefusesNoCertificate(t *testing.T) {
	a := found(t, Options{})
	b := admit(t, a)
	for _, alpn := range []string{ALPNControl, ALPNBulk} {
		config := b.ClientTLS(alpn, a.ID(), anyone)
		config.GetClientCertificate = nil
		m := shake(a.ServerTLS(anyone), config)
		if m.serverErr == nil || m.clientErr == nil {
			t.Fatalf("let in: %v, %v", m.serverErr, m.clientErr)
		}
		if m.handshakeErr != nil {
			t.Fatalf("ServerTLS says that the dial succeeds, but: %v", m.handshakeErr)
		}
	}
}

func TestWrongNodeAnswers(t *testing.T) {
	a := found(t, Options{})
	b, c := admit(t, a), admit(t, a)
	m := shake(b.ServerTLS(anyone), a.ClientTLS(ALPNControl, c.ID(), anyone))
	wantError(t, m.clientErr, ErrWrongID)
}

func TestRevokedIsRefusedByBothSides(t *testing.T) {
	a := found(t, Options{})
	b := admit(t, a)
	revoked := errors.New("revoked")
	allow := func(id string) error {
		if id == b.ID() {
			return revoked
		}
		return nil
	}
	m := shake(a.ServerTLS(allow), b.ClientTLS(ALPNControl, a.ID(), anyone))
	wantError(t, m.serverErr, revoked)
	if m.clientErr == nil {
		t.Fatal("the revoked client was let in")
	}
	m = shake(b.ServerTLS(anyone), a.ClientTLS(ALPNControl, b.ID(), allow))
	wantError(t, m.clientErr, revoked)
	if m.serverErr == nil {
		t.Fatal("the revoked server was let in")
	}
	must(t, shake(a.ServerTLS(allow), admit(t, a).ClientTLS(ALPNControl, a.ID(), allow)).err())
}

func TestServerRefusesProtocols(t *testing.T) {
	a := found(t, Options{})
	b := admit(t, a)
	for what, change := range map[string]func(c *tls.Config){
		"no protocol":      func(c *tls.Config) { c.NextProtos = nil },
		"another protocol": func(c *tls.Config) { c.NextProtos = []string{"h3"} },
		"an older TLS":     func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
	} {
		config := b.ClientTLS(ALPNControl, a.ID(), anyone)
		change(config)
		if m := shake(a.ServerTLS(anyone), config); m.serverErr == nil || m.clientErr == nil {
			t.Errorf("%s: let in: %v, %v", what, m.serverErr, m.clientErr)
		}
	}
}

// A session is never resumed: its certificate may have been revoked since.
func TestNoSessionIsResumed(t *testing.T) {
	a := found(t, Options{})
	b := admit(t, a)
	server, client := a.ServerTLS(anyone), b.ClientTLS(ALPNControl, a.ID(), anyone)
	client.SessionTicketsDisabled, client.ClientSessionCache = false, tls.NewLRUClientSessionCache(4)
	client.ServerName = a.ID() // what a cache goes by
	for range 2 {
		m := shake(server, client)
		must(t, m.err())
		if m.server.DidResume || m.client.DidResume {
			t.Fatal("resumed")
		}
	}
}

func TestPeerIDWithoutCertificate(t *testing.T) {
	_, err := PeerID(tls.ConnectionState{})
	wantError(t, err, ErrCertificate)
	if id := PeerMeshID(tls.ConnectionState{}); id != "" {
		t.Fatal(id)
	}
	stranger := tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Issuer: pkix.Name{CommonName: "hopmesh of the north"}}}}
	if id := PeerMeshID(stranger); id != "" {
		t.Fatal(id)
	}
	_, err = PeerID(stranger)
	wantError(t, err, ErrCertificate)
}
