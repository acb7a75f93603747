package identity

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

func TestAPITokens(t *testing.T) {
	token, err := NewAPIToken([32]byte{1, 2, 3})
	must(t, err)
	got, err := ParseAPIToken(" " + strings.ToUpper(token.String()) + "\n")
	must(t, err)
	if got != token || got.Hash() != token.Hash() || !strings.HasPrefix(token.String(), "hma1-") {
		t.Errorf("%v became %v", token, got)
	}
	// Neither kind passes for the other, and nobody reads of the other kind.
	join := newToken(t)
	for _, wrong := range []string{"", join.String(), token.String()[:40], token.String() + "a", "hma1-" + join.String()[4:]} {
		if _, err := ParseAPIToken(wrong); !errors.Is(err, ErrAPIToken) || errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := ParseToken(token.String()); !errors.Is(err, ErrToken) {
		t.Errorf("it passes for a join token: %v", err)
	}
}

// The API has no certificate for members' protocols, and they have none for it.
func TestTheAPIIsNoProtocolOfTheMesh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := found(t, Options{})
		member := admit(t, mesh)
		client := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{alpnAPI}, InsecureSkipVerify: true}
		m := shake(member.APITLS(), client)
		must(t, m.err())
		if len(m.server.PeerCertificates) != 0 || m.server.NegotiatedProtocol != alpnAPI || m.server.Version != tls.VersionTLS13 {
			t.Errorf("met by %x over %q", m.server.Version, m.server.NegotiatedProtocol)
		}
		if m := shake(member.ServerTLS(never(t)), client); m.err() == nil {
			t.Error("a client of the API is served as a member")
		}
		if m := shake(member.APITLS(), mesh.ClientTLS(ALPNControl, "", anyone)); m.err() == nil {
			t.Error("a member is served as a client of the API")
		}
		older := client.Clone()
		older.MinVersion, older.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		if m := shake(member.APITLS(), older); m.err() == nil {
			t.Error("TLS 1.2 is spoken")
		}
	})
}
