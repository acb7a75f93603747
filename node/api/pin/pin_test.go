package pin

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

var start = time.Unix(1_000_000_000, 0)

// holder is a certificate with its key.
type holder struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// issue makes a certificate, signed by a holder or, if by is nil, by itself.
func issue(t testing.TB, by *holder, change func(*x509.Certificate)) *holder {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issueFor(t, by, public, key, change)
}

func issueFor(t testing.TB, by *holder, public ed25519.PublicKey, key ed25519.PrivateKey, change func(*x509.Certificate)) *holder {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mesh"}, NotBefore: start, NotAfter: start.Add(time.Hour), BasicConstraintsValid: true,
	}
	change(c)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, public, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &holder{cert, key}
}

func authority(c *x509.Certificate) {
	c.IsCA, c.KeyUsage, c.MaxPathLenZero, c.NotAfter = true, x509.KeyUsageCertSign, true, start.AddDate(100, 0, 0)
}

func server(c *x509.Certificate) {
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func TestChains(t *testing.T) {
	mesh, foreign := issue(t, nil, authority), issue(t, nil, authority)
	next := issue(t, nil, authority)
	link := issueFor(t, mesh, next.cert.PublicKey.(ed25519.PublicKey), next.key, authority)
	forged := issueFor(t, foreign, next.cert.PublicKey.(ed25519.PublicKey), next.key, authority)
	node, young, stranger := issue(t, mesh, server), issue(t, next, server), issue(t, foreign, server)
	client := issue(t, mesh, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	// The pinned key in a certificate that its owner has not signed.
	altered := issueFor(t, foreign, mesh.cert.PublicKey.(ed25519.PublicKey), mesh.key, authority)
	under := issue(t, node, server)
	for name, c := range map[string]struct {
		chain []*holder
		at    time.Time
		want  error
	}{
		"a node":                               {[]*holder{node, mesh}, start, nil},
		"a clock that is behind":               {[]*holder{node, mesh}, start.AddDate(-10, 0, 0), nil},
		"a node of the successor":              {[]*holder{young, next, link, mesh}, start, nil},
		"the same in another order":            {[]*holder{young, mesh, link, next}, start, nil},
		"expired":                              {[]*holder{node, mesh}, start.Add(2 * time.Hour), ErrExpired},
		"expired, of the successor":            {[]*holder{young, next, link, mesh}, start.Add(2 * time.Hour), ErrExpired},
		"another mesh":                         {[]*holder{stranger, foreign}, start, ErrForeign},
		"another mesh with this authority":     {[]*holder{stranger, mesh}, start, ErrForeign},
		"another mesh with both":               {[]*holder{stranger, foreign, mesh}, start, ErrForeign},
		"a successor without its link":         {[]*holder{young, next, mesh}, start, ErrForeign},
		"a successor that another vouches for": {[]*holder{young, next, forged, mesh}, start, ErrForeign},
		"an altered authority":                 {[]*holder{node, altered}, start, ErrForeign},
		"a node's certificate as a link":       {[]*holder{under, node, mesh}, start, ErrForeign},
		"a client's certificate":               {[]*holder{client, mesh}, start, ErrForeign},
		"the authority as a node":              {[]*holder{mesh, mesh}, start, ErrForeign},
		"no authority":                         {[]*holder{node}, start, ErrForeign},
		"nothing":                              {nil, start, ErrForeign},
		"a long chain":                         {[]*holder{node, mesh, mesh, mesh, mesh}, start, ErrForeign},
	} {
		var chain []*x509.Certificate
		for _, h := range c.chain {
			chain = append(chain, h.cert)
		}
		if err := verify(chain, sha256.Sum256(mesh.cert.RawSubjectPublicKeyInfo), c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// written is the text of a token.
func written(digest [sha256.Size]byte) string {
	b := append(digest[:], make([]byte, secret)...)
	sum := sha256.Sum256(append([]byte(prefix), b...))
	return prefix + text.EncodeToString(append(b, sum[:check]...))
}

func TestTokens(t *testing.T) {
	digest := sha256.Sum256([]byte("a key"))
	whole := written(digest)
	got, sent, err := Authority("  " + strings.ToUpper(whole) + "\n")
	if err != nil || got != digest || sent != whole {
		t.Errorf("%x as %q, %v", got, sent, err)
	}
	for wrong, says := range map[string]string{
		"":                                "does not start",
		"hm1-" + whole[5:]:                "does not start",
		whole[:40]:                        "copy it again, whole",
		whole + "a":                       "copy it again, whole",
		whole[:30] + "1" + whole[31:]:     "no token has",
		whole[:30] + "aaaaa" + whole[35:]: "a character in it is wrong",
	} {
		if _, _, err := Authority(wrong); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", wrong, err)
		} else if len(wrong) > 20 && strings.Contains(err.Error(), wrong[10:20]) {
			t.Errorf("the error repeats the token: %v", err)
		}
	}
}

func FuzzAuthority(f *testing.F) {
	f.Add("")
	f.Add(prefix)
	f.Add(written(sha256.Sum256(nil)))
	f.Fuzz(func(t *testing.T, s string) {
		digest, sent, err := Authority(s)
		if err != nil {
			return
		}
		if again, same, err := Authority(sent); err != nil || again != digest || same != sent {
			t.Errorf("%q became %q: %v", s, sent, err)
		}
	})
}
