package identity

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// renewed makes i show a new key, signed by signer.
func renewed(t testing.TB, signer, i *Identity) {
	t.Helper()
	r, err := i.Renew()
	must(t, err)
	chain, err := signer.Sign(r.CSR(), i.ID(), time.Now())
	must(t, err)
	must(t, r.Adopt(chain))
}

// The configurations made before a renewal show the new certificate, so a
// listener need not be opened anew.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := found(t, Options{})
		i := admit(t, first)
		server, client := i.ServerTLS(anyone), i.ClientTLS(ALPNControl, "", anyone)
		old := i.PublicKeyHash()
		time.Sleep(i.RenewIn())
		renewed(t, first, i)
		renewed(t, first, first)
		if i.PublicKeyHash() == old || i.RenewIn() == 0 {
			t.Fatal("nothing is new")
		}
		again, err := Load(i.dir, Options{})
		must(t, err)
		if !same(i, again) {
			t.Fatal("disk and memory differ")
		}
		time.Sleep(60 * 24 * time.Hour) // the first certificates are long over
		s := shake(first.ServerTLS(anyone), client)
		must(t, s.err())
		if got := peerKey(s.server); got != i.PublicKeyHash() {
			t.Fatal("as a client, it shows the old certificate")
		}
		s = shake(server, first.ClientTLS(ALPNBulk, i.ID(), anyone))
		must(t, s.err())
		if got := peerKey(s.client); got != i.PublicKeyHash() {
			t.Fatal("as a server, it shows the old certificate")
		}
	})
}

func TestRenewalRefused(t *testing.T) {
	first, foreign := found(t, Options{}), found(t, Options{})
	i := admit(t, first)
	r, err := i.Renew()
	must(t, err)
	before, err := Load(i.dir, Options{})
	must(t, err)
	sign := func(signer *Identity, csr []byte, id string, at time.Time) [][]byte {
		chain, err := signer.Sign(csr, id, at)
		must(t, err)
		return chain
	}
	other, err := i.Renew()
	must(t, err)
	now := time.Now()
	for _, c := range []struct {
		what  string
		chain [][]byte
		want  error
	}{
		{"nothing", nil, ErrCertificate},
		{"another mesh", sign(foreign, r.CSR(), i.ID(), now), ErrForeignMesh},
		{"another mesh's authority", [][]byte{sign(first, r.CSR(), i.ID(), now)[0], foreign.trust.Load().newest.cert.Raw}, ErrForeignMesh},
		{"another node", sign(first, r.CSR(), first.ID(), now), ErrWrongID},
		{"another key", sign(first, other.CSR(), i.ID(), now), ErrCertificate},
		{"expired", sign(first, r.CSR(), i.ID(), now.AddDate(-1, 0, 0)), ErrExpired},
	} {
		if err := r.Adopt(c.chain); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
	after, err := Load(i.dir, Options{})
	must(t, err)
	if !same(before, i) || !same(before, after) {
		t.Fatal("a refused chain changed something")
	}
}

// Handshakes, renewals and changes of keys run side by side.
func TestConcurrentUse(t *testing.T) {
	first := found(t, Options{})
	i := admit(t, first)
	key, err := first.CAKey()
	must(t, err)
	server, client := i.ServerTLS(anyone), first.ClientTLS(ALPNControl, i.ID(), anyone)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := shake(server, client).err(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		r, err := i.Renew()
		if err != nil {
			t.Error(err)
			return
		}
		chain, err := first.Sign(r.CSR(), i.ID(), time.Now())
		if err := errors.Join(err, r.Adopt(chain)); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := errors.Join(i.AdoptCAKey(key), i.SetGossipKeys([]GossipKey{NewGossipKey(2)})); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { _, _, _ = i.GossipKeys(), i.HasCAKey(), i.RenewIn() })
	wg.Wait()
	again, err := Load(i.dir, Options{})
	must(t, err)
	if !same(i, again) {
		t.Fatal("disk and memory differ")
	}
}

func peerKey(cs tls.ConnectionState) string {
	public, _ := cs.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	return publicKeyHash(public)
}

func signed(t *testing.T, by *Identity, csr []byte, id string, at time.Time) [][]byte {
	t.Helper()
	chain, err := by.Sign(csr, id, at)
	must(t, err)
	return chain
}

// A certificate from the future, whoever's clock was wrong, is good, and due for renewal.
func TestCertificateFromTheFuture(t *testing.T) {
	first := found(t, Options{})
	i := admit(t, first)
	r, err := i.Renew()
	must(t, err)
	must(t, r.Adopt(signed(t, first, r.CSR(), i.ID(), time.Now().AddDate(1, 0, 0))))
	for _, m := range []meeting{shake(i.ServerTLS(anyone), first.ClientTLS(ALPNControl, i.ID(), anyone)), shake(first.ServerTLS(anyone), i.ClientTLS(ALPNControl, first.ID(), anyone))} {
		if m.clientErr != nil || m.serverErr != nil {
			t.Errorf("%v, %v", m.clientErr, m.serverErr)
		}
	}
	if left := i.RenewIn(); left != 0 {
		t.Errorf("it is renewed in %v", left)
	}
	if r, err = i.Renew(); err != nil {
		t.Fatal(err)
	}
	must(t, r.Adopt(signed(t, first, r.CSR(), i.ID(), time.Now())))
	if left := i.RenewIn(); left < 44*24*time.Hour {
		t.Errorf("one that was signed now is renewed in %v", left)
	}
	i.Follow(func() time.Time { return time.Now().AddDate(-20, 0, 0) })
	if m := shake(first.ServerTLS(anyone), i.ClientTLS(ALPNControl, first.ID(), anyone)); m.clientErr != nil {
		t.Errorf("by a clock that is twenty years behind: %v", m.clientErr)
	}
}
