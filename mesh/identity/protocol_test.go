package identity

import (
	"crypto/tls"
	"testing"
)

func TestRangesHaveTheHighestInCommon(t *testing.T) {
	for _, c := range []struct {
		a, b Range
		n    int
		ok   bool
	}{
		{Range{1, 1}, Range{1, 1}, 1, true},
		{Range{}, Range{1, 2}, 1, true},
		{Range{1, 2}, Range{2, 3}, 2, true},
		{Range{1, 3}, Range{1, 2}, 2, true},
		{Range{1, 1}, Range{2, 3}, 0, false},
		{Range{2, 2}, Range{}, 0, false},
	} {
		for _, pair := range [][2]Range{{c.a, c.b}, {c.b, c.a}} {
			if n, ok := pair[0].Common(pair[1]); ok != c.ok || ok && n != c.n {
				t.Errorf("%v: %d, %v", pair, n, ok)
			}
		}
	}
}

// The highest version that both speak is spoken. Without one the handshake passes, in what the
// client offered, and proves who it is, so that it can be told why it is not served.
func TestVersionsOfProtocols(t *testing.T) {
	for _, c := range []struct {
		server, client Range
		want           string
	}{
		{Range{1, 2}, Range{2, 3}, ALPNControl + "/2"},
		{Range{1, 3}, Range{1, 2}, ALPNControl + "/2"},
		{Range{1, 1}, Range{1, 2}, ALPNControl + "/1"},
		{Range{1, 1}, Range{2, 3}, ALPNControl + "/3"},
		{Range{2, 2}, Range{1, 1}, ALPNControl + "/1"},
	} {
		a := found(t, Options{})
		b := admit(t, a)
		a.Speak(c.server)
		b.Speak(c.client)
		m := shake(a.ServerTLS(anyone), b.ClientTLS(ALPNControl, a.ID(), anyone))
		must(t, m.err())
		if m.server.NegotiatedProtocol != c.want || m.client.NegotiatedProtocol != c.want {
			t.Errorf("%v and %v speak %q", c.server, c.client, m.server.NegotiatedProtocol)
		}
		if id, err := PeerID(m.server); err != nil || id != b.ID() {
			t.Errorf("the peer is %s: %v", id, err)
		}
	}
	a := found(t, Options{})
	m := shake(a.ServerTLS(never(t)), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"hopmesh-join/7"}})
	must(t, m.err())
	if protocol, n := Protocol(m.server.NegotiatedProtocol); protocol != "hopmesh-join" || n != 7 {
		t.Errorf("a newcomer of another version speaks %q", m.server.NegotiatedProtocol)
	}
}

func FuzzRange(f *testing.F) {
	for _, s := range []string{"", "1", "1-2", "2-1", "01", "-1", "1-1", "99999999999999999999", "1-70000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRange(s)
		if err == nil && s != "" && (r.String() != s || r.Min < 1 || r.Max > maxNumber) {
			t.Fatalf("%q was read as %+v", s, r)
		}
	})
}
