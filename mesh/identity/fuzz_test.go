package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These decode what anybody may have sent. None may panic, allocate by what a
// number in the input says, or accept what is not proven.

func FuzzParseToken(f *testing.F) {
	f.Add("")
	f.Add("hm1-")
	f.Add(APIToken(fixedToken).String())
	f.Add(fixedToken.String())
	f.Add(fixedToken.String()[:50])
	f.Add("hm1-" + string(bytes.Repeat([]byte("a"), 87)))
	f.Fuzz(func(t *testing.T, s string) {
		if token, err := ParseAPIToken(s); err == nil && token.String() != strings.ToLower(strings.TrimSpace(s)) {
			t.Errorf("%q became %q", s, token)
		}
		token, err := ParseToken(s)
		if err != nil {
			return
		}
		again, err := ParseToken(token.String())
		if err != nil || again != token {
			t.Fatalf("%q is read as %q, which is read as %q, %v", s, token, again, err)
		}
	})
}

func FuzzSigningRequest(f *testing.F) {
	i := found(f, Options{})
	_, csr, err := newLeafKey(i.ID())
	must(f, err)
	f.Add(csr)
	f.Add(csr[:len(csr)/2])
	f.Add(ecdsaRequest(f))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, der []byte) {
		hash, err := CSRKeyHash(der)
		chain, signErr := i.Sign(der, i.ID(), time.Now())
		if (err == nil) != (signErr == nil) {
			t.Fatalf("its key can be read: %v; it can be signed: %v", err, signErr)
		}
		if err != nil {
			return
		}
		certs, err := parseChain(chain)
		must(t, err)
		if publicKeyHash(certs[0].PublicKey.(ed25519.PublicKey)) != hash || !certs[1].Equal(i.trust.Load().newest.cert) {
			t.Fatal("signed another key than the request's")
		}
	})
}

func FuzzChain(f *testing.F) {
	i, foreign := found(f, Options{}), found(f, Options{})
	for _, of := range []*Identity{i, foreign} {
		chain := of.shown().Certificate
		f.Add(chain[0], chain[1], []byte(nil), []byte(nil))
		f.Add(chain[1], chain[0], []byte(nil), []byte(nil))
		f.Add(chain[0][:100], chain[1], []byte(nil), []byte(nil))
		s, key, err := of.NewSuccessor(time.Now())
		must(f, err)
		_ = key
		f.Add(chain[0], s.Cert, s.Link, chain[1])
	}
	f.Add([]byte(nil), []byte("garbage"), []byte(nil), []byte(nil))
	mine := i.current.Load().leaf
	f.Fuzz(func(t *testing.T, first, second, third, fourth []byte) {
		chain := [][]byte{first, second, third, fourth}
		if len(third)+len(fourth) == 0 {
			chain = chain[:2]
		}
		certs, err := parseChain(chain)
		if err != nil {
			return
		}
		leaf := certs[0]
		_, _ = newAuthority(certs[1])
		_, _ = nodeID(leaf)
		_, _ = pinned(certs, i.CAHash())
		id, err := i.trust.Load().verify(certs, x509.ExtKeyUsageServerAuth, mine.NotAfter)
		// The authority has signed one certificate, so no other may pass.
		if err == nil && (id != i.ID() || !bytes.Equal(leaf.RawTBSCertificate, mine.RawTBSCertificate)) {
			t.Fatalf("a certificate that was never signed passes as that of node %s", id)
		}
	})
}

// FuzzSuccessor: only who holds the authority's key can name another.
func FuzzSuccessor(f *testing.F) {
	i, foreign := found(f, Options{}), found(f, Options{})
	good, _, err := i.NewSuccessor(time.Now())
	must(f, err)
	other, _, err := foreign.NewSuccessor(time.Now())
	must(f, err)
	f.Add(good.Cert, other.Link)
	f.Add(good.Link, good.Link)
	f.Add(good.Cert[:100], good.Link)
	f.Add([]byte(nil), []byte("garbage"))
	f.Fuzz(func(t *testing.T, cert, link []byte) {
		if bytes.Equal(cert, good.Cert) && bytes.Equal(link, good.Link) {
			return
		}
		fresh, err := i.Succeed(Successor{Cert: cert, Link: link})
		if fresh {
			t.Fatal("an authority that nobody vouches for is trusted")
		}
		if _, hashErr := AuthorityHash(cert); err == nil && hashErr != nil {
			t.Fatalf("its key can't be read: %v", hashErr)
		}
	})
}

func FuzzGrant(f *testing.F) {
	first := found(f, Options{})
	r := request(f, filepath.Join(f.TempDir(), "identity"))
	good := grant(f, first, r)
	good.Peers = []Peer{{ID: first.ID(), Name: first.Name(), Addr: "10.0.0.1:7946"}}
	b, err := json.Marshal(good)
	must(f, err)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(`{"mesh":"","chain":[null,"AA=="],"keys":[{}],"peers":[{}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var g Grant
		if json.Unmarshal(b, &g) != nil {
			return
		}
		i, err := r.Accept(g, first.CAHash())
		if err != nil {
			return
		}
		if i.ID() != r.ID() || i.MeshID() != first.MeshID() || i.PublicKeyHash() != r.PublicKeyHash() {
			t.Fatalf("accepted as node %s of mesh %s", i.ID(), i.MeshID())
		}
		must(t, Erase(r.dir))
	})
}

func FuzzGossipKeys(f *testing.F) {
	b, err := json.Marshal([]GossipKey{NewGossipKey(2), NewGossipKey(1)})
	must(f, err)
	f.Add(b)
	f.Add([]byte(`[{"serial":1,"key":"AA=="}]`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parseGossipKeys(b)
		if err != nil {
			return
		}
		if len(keys) == 0 || len(keys) > maxGossipKeys {
			t.Fatalf("%d keys", len(keys))
		}
	})
}

func FuzzPendingRequest(f *testing.F) {
	r := request(f, filepath.Join(f.TempDir(), "identity"))
	f.Add(read(f, r.dir+pendingSuffix))
	f.Add([]byte(`{"id":"0000000000000000","name":"a","key":"AA=="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseRequest(r.dir, b)
		if err != nil {
			return
		}
		if hash, err := CSRKeyHash(got.CSR()); err != nil || hash != got.PublicKeyHash() {
			t.Fatalf("its signing request does not fit its key: %v", err)
		}
	})
}
