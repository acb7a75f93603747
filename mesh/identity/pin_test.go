package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewcomerMeetsTheMeshOfItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := found(t, Options{})
		second := admit(t, first)
		for _, i := range []*Identity{first, second} {
			m := shake(i.ServerTLS(never(t)), JoinTLS(first.CAHash()))
			must(t, m.err())
			if m.server.NegotiatedProtocol != ALPNJoin || len(m.server.PeerCertificates) != 0 {
				t.Fatalf("met over %q", m.server.NegotiatedProtocol)
			}
		}
		time.Sleep(365 * 24 * time.Hour) // or the newcomer's clock is wrong by as much
		must(t, shake(second.ServerTLS(never(t)), JoinTLS(first.CAHash())).err())
	})
}

// never is for who must not be asked whether anybody is a member.
func never(t testing.TB) func(string) error {
	return func(id string) error {
		t.Errorf("it was asked whether %s is a member", id)
		return nil
	}
}

// Whoever offers to join gets to the join desk and nowhere else, whatever else it
// offers or shows.
func TestJoinReachesOnlyJoin(t *testing.T) {
	first := found(t, Options{})
	second := admit(t, first)
	for _, protocols := range [][]string{
		{ALPNJoin}, {ALPNControl + "/1", ALPNJoin}, {ALPNJoin, ALPNBulk + "/1"}, {ALPNBulk + "/2", ALPNControl + "/1", ALPNJoin, "h3"},
	} {
		for _, config := range []*tls.Config{ProbeTLS(), second.ClientTLS("", first.ID(), anyone)} {
			config.NextProtos = protocols
			m := shake(first.ServerTLS(never(t)), config)
			must(t, m.err())
			if m.server.NegotiatedProtocol != ALPNJoin {
				t.Fatalf("%v reaches %q", protocols, m.server.NegotiatedProtocol)
			}
		}
	}
}

func TestNewcomerRefusesImpostors(t *testing.T) {
	// In virtual time, because a pipe has no room: where both ends are writing when
	// the client gives up, only the deadline parts them.
	synctest.Test(t, func(t *testing.T) {
		mesh, foreign := found(t, Options{}), found(t, Options{})
		member := admit(t, mesh)
		genuine := member.shown()
		show := func(certs ...[]byte) *tls.Config {
			config := baseTLS(ALPNJoin)
			config.Certificates = []tls.Certificate{{Certificate: certs, PrivateKey: genuine.PrivateKey}}
			return config
		}
		stranger := admit(t, foreign)
		strangers := baseTLS(ALPNJoin)
		strangers.Certificates = []tls.Certificate{{
			// Its own certificate beside the authority's of the token, which anybody can get.
			Certificate: [][]byte{stranger.current.Load().leaf.Raw, mesh.trust.Load().newest.cert.Raw},
			PrivateKey:  stranger.current.Load().key,
		}}
		noProtocol := show(genuine.Certificate...)
		noProtocol.NextProtos = nil
		clientOnly := minted(t, member, mesh.trust.Load().newest.cert, mesh.caKey, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})
		for _, c := range []struct {
			what   string
			server *tls.Config
			want   error
		}{
			{"another mesh", foreign.ServerTLS(anyone), ErrForeignMesh},
			{"another mesh with this one's authority", strangers, ErrForeignMesh},
			{"no authority", show(genuine.Certificate[0]), ErrForeignMesh},
			{"three certificates", show(genuine.Certificate[0], foreign.trust.Load().newest.cert.Raw, mesh.trust.Load().newest.cert.Raw), ErrForeignMesh},
			{"an altered authority", show(genuine.Certificate[0], alteredAuthority(t, mesh)), ErrCertificate},
			{"a certificate for clients", clientOnly.ServerTLS(anyone), ErrCertificate},
			{"no protocol", noProtocol, ErrProtocol},
		} {
			m := shake(c.server, JoinTLS(mesh.CAHash()))
			if !errors.Is(m.clientErr, c.want) {
				t.Errorf("%s: got %v, want %v", c.what, m.clientErr, c.want)
			}
		}
		must(t, shake(show(genuine.Certificate...), JoinTLS(mesh.CAHash())).err())
	})
}

func TestProbeMeetsAnybody(t *testing.T) {
	i := found(t, Options{})
	m := shake(i.ServerTLS(never(t)), ProbeTLS())
	must(t, m.err())
	if PeerMeshID(m.client) != i.MeshID() {
		t.Fatalf("it says that it is of mesh %q", PeerMeshID(m.client))
	}
}
