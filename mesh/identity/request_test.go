package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func ecdsaRequest(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(t, err)
	return csr
}

func TestRequestIsAccepted(t *testing.T) {
	first := found(t, Options{})
	r := request(t, place(t))
	g := grant(t, first, r)
	i, err := r.Accept(g, first.CAHash())
	must(t, err)
	if i.ID() != r.ID() || i.Name() != "second" || i.MeshID() != first.MeshID() || i.CAHash() != first.CAHash() || i.HasCAKey() {
		t.Fatalf("accepted as %+v", i)
	}
	if i.ResetKey() == first.ResetKey() {
		t.Fatal("two nodes with one reset key")
	}
	again, err := Load(i.dir, Options{})
	must(t, err)
	if !same(i, again) {
		t.Fatal("what was loaded is not what was accepted")
	}
	if _, err := os.Stat(r.dir + pendingSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the answered request is still there: %v", err)
	}
	_, err = NewRequest(r.dir, "second")
	wantError(t, err, ErrExists)
	_, err = r.Accept(g, first.CAHash())
	wantError(t, err, ErrExists)
}

// Whoever crashed after it was admitted and before it knew asks again with the
// same id and key, and is granted again.
func TestRequestIsRetried(t *testing.T) {
	first := found(t, Options{})
	dir := place(t)
	before := request(t, dir)
	lost := grant(t, first, before)
	after := request(t, dir+"/")
	if before.ID() != after.ID() || before.PublicKeyHash() != after.PublicKeyHash() {
		t.Fatal("another request after a crash")
	}
	i, err := after.Accept(lost, first.CAHash())
	must(t, err)
	if i.ID() != before.ID() {
		t.Fatal("another id than asked for")
	}
}

func TestRequestUnderAnotherName(t *testing.T) {
	dir := place(t)
	before := request(t, dir)
	after, err := NewRequest(dir, "third")
	must(t, err)
	if before.ID() == after.ID() || before.PublicKeyHash() == after.PublicKeyHash() {
		t.Fatal("one id for two names")
	}
	again, err := NewRequest(dir, "third")
	must(t, err)
	if again.ID() != after.ID() {
		t.Fatal("the new request was not kept")
	}
}

func TestRequestCutOff(t *testing.T) {
	dir := place(t)
	request(t, dir)
	path := dir + pendingSuffix
	b := read(t, path)
	for n := range b {
		write(t, path, b[:n])
		_, err := NewRequest(dir, "second")
		wantError(t, err, ErrDamaged)
	}
	must(t, os.Remove(path))
	request(t, dir)
}

// A founder that once asked to join elsewhere has forgotten that.
func TestFoundForgetsRequest(t *testing.T) {
	dir := place(t)
	request(t, dir)
	_, err := Found(dir, "first", Options{})
	must(t, err)
	if _, err := os.Stat(dir + pendingSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestGrantRefused(t *testing.T) {
	first, foreign := found(t, Options{}), found(t, Options{})
	r, other := request(t, place(t)), request(t, place(t))
	good := grant(t, first, r)
	sign := func(csr []byte, id string, at time.Time) [][]byte {
		chain, err := first.Sign(csr, id, at)
		must(t, err)
		return chain
	}
	now := time.Now()
	for _, c := range []struct {
		what   string
		change func(g *Grant)
		want   error
	}{
		{"no chain", func(g *Grant) { g.Chain = nil }, ErrCertificate},
		{"no authority", func(g *Grant) { g.Chain = g.Chain[:1] }, ErrCertificate},
		{"garbage", func(g *Grant) { g.Chain = [][]byte{g.Chain[0], []byte("garbage")} }, ErrCertificate},
		{"a huge certificate", func(g *Grant) { g.Chain = [][]byte{make([]byte, 1<<20), g.Chain[1]} }, ErrCertificate},
		{"another mesh", func(g *Grant) { *g = grant(t, foreign, r) }, ErrForeignMesh},
		{"another mesh's leaf", func(g *Grant) { g.Chain[0] = grant(t, foreign, r).Chain[0] }, ErrForeignMesh},
		{"another mesh's name", func(g *Grant) { g.MeshID = foreign.MeshID() }, ErrGrant},
		{"an authority not signed by its key", func(g *Grant) { g.Chain[1] = alteredAuthority(t, first) }, ErrCertificate},
		{"a leaf as authority", func(g *Grant) { g.Chain[1] = g.Chain[0] }, ErrForeignMesh},
		{"another node", func(g *Grant) { g.Chain = sign(r.CSR(), other.ID(), now) }, ErrWrongID},
		{"another key", func(g *Grant) { g.Chain = sign(other.CSR(), r.ID(), now) }, ErrCertificate},
		{"expired", func(g *Grant) { g.Chain = sign(r.CSR(), r.ID(), now.Add(-91*24*time.Hour)) }, ErrExpired},
		{"no gossip key", func(g *Grant) { g.Keys = nil }, ErrGossipKeys},
		{"a short gossip key", func(g *Grant) { g.Keys[0].Key = g.Keys[0].Key[:1] }, ErrGossipKeys},
	} {
		g := Grant{MeshID: good.MeshID, Chain: append([][]byte(nil), good.Chain...), Keys: copyGossipKeys(good.Keys)}
		c.change(&g)
		_, err := r.Accept(g, first.CAHash())
		if !errors.Is(err, ErrGrant) || !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
		if _, err := Load(r.dir, Options{}); !errors.Is(err, ErrNone) {
			t.Fatalf("%s: left an identity behind: %v", c.what, err)
		}
	}
	if again := request(t, r.dir); again.ID() != r.ID() {
		t.Fatal("a refused grant took the request with it")
	}
	_, err := r.Accept(good, first.CAHash())
	must(t, err)
}

// alteredAuthority has the genuine authority's key, so that a token's digest
// fits, but another's signature: what somebody in between could make.
func alteredAuthority(t testing.TB, of *Identity) []byte {
	t.Helper()
	_, key, err := createAuthority(newID(), 0, time.Now())
	must(t, err)
	template := *of.trust.Load().newest.cert
	template.Subject = pkix.Name{CommonName: caNamePrefix + "0123456789abcdef"}
	template.PublicKey, template.Signature = nil, nil
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, of.trust.Load().newest.cert.PublicKey, key)
	must(t, err)
	return der
}

// An expired identity still loads: one that can sign renews itself.
func TestExpiredIdentityRenewsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := found(t, Options{}).dir
		time.Sleep(200 * 24 * time.Hour)
		i, err := Load(dir, Options{})
		must(t, err)
		if time.Now().Before(i.NotAfter()) {
			t.Fatal("not expired")
		}
		r, err := i.Renew()
		must(t, err)
		chain, err := i.Sign(r.CSR(), i.ID(), time.Now())
		must(t, err)
		must(t, r.Adopt(chain))
		if left := time.Until(i.NotAfter()); left != 90*24*time.Hour {
			t.Fatalf("renewed for %s", left)
		}
	})
}
