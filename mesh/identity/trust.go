package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// maxChain is the length of the longest chain: a node's certificate, its authority's, and, while
// the one before is still trusted, what that one says of the new, and its own.
const maxChain = 4

// trust is the authorities whose certificates a node accepts. It is immutable.
type trust struct {
	newest *authority
	// former is the authority before, while nodes may still have its certificates, else nil. link
	// is its certificate for the key of newest: by that, nodes that know only the former accept
	// those that have certificates of the newest.
	former *authority
	link   *x509.Certificate
}

// all lists the authorities, the newest first.
func (t *trust) all() []*authority {
	if t.former == nil {
		return []*authority{t.newest}
	}
	return []*authority{t.newest, t.former}
}

// find returns the authority with this certificate, or nil.
func (t *trust) find(ca *x509.Certificate) *authority {
	for _, a := range t.all() {
		if a.cert.Equal(ca) {
			return a
		}
	}
	return nil
}

// verify returns the node id in the first certificate of a chain. It returns an error unless it is
// valid for this use at this time and was issued by an authority of the trust, or by one for whose
// key such an authority has issued a certificate, which is in the chain.
func (t *trust) verify(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) (string, error) {
	leaf, rest := chain[0], chain[1:min(len(chain), maxChain)]
	var first error
	try := func(a *authority) (string, bool) {
		id, err := a.verify(leaf, use, now)
		if err != nil && (first == nil || errors.Is(first, ErrForeignMesh)) {
			first = err
		}
		return id, err == nil
	}
	for _, a := range t.all() {
		if id, ok := try(a); ok {
			return id, nil
		}
	}
	for _, link := range rest {
		for _, a := range t.all() {
			if next := a.successor(link); next != nil {
				if id, ok := try(next); ok {
					return id, nil
				}
			}
		}
	}
	return "", first
}

// successor returns the authority for whose key this one has issued a certificate, or nil if the
// certificate is no such one.
func (a *authority) successor(link *x509.Certificate) *authority {
	if !link.IsCA || link.Subject.CommonName != a.cert.Subject.CommonName || link.CheckSignatureFrom(a.cert) != nil {
		return nil
	}
	next := &authority{cert: link, pool: x509.NewCertPool(), meshID: a.meshID, hash: hashKey(link)}
	next.pool.AddCert(link)
	return next
}

// vouches reports whether link is the certificate of a for the key of next.
func (a *authority) vouches(next *authority, link *x509.Certificate) bool {
	s := a.successor(link)
	return s != nil && s.hash == next.hash && next.meshID == a.meshID && next.serial == a.serial+1
}

// chain returns what a node shows that has this leaf: with the authority that issued it, and where
// that is the newest, with what makes those accept it who know only the former.
func (t *trust) chain(leaf []byte, issuer *authority) [][]byte {
	c := [][]byte{leaf, issuer.cert.Raw}
	if t.former != nil && issuer == t.newest {
		c = append(c, t.link.Raw, t.former.cert.Raw)
	}
	return c
}

// pinned returns the trust of somebody who knows no more than the digest of an authority's key and
// what the chain of a node says: the authority with that key, and where the chain says so its
// successor.
func pinned(chain []*x509.Certificate, hash [sha256.Size]byte) (*trust, error) {
	if len(chain) != 2 && len(chain) != maxChain {
		return nil, fmt.Errorf("%w: %d certificates instead of a node's and its authority's", ErrForeignMesh, len(chain))
	}
	if hashKey(chain[1]) == hash {
		a, err := newAuthority(chain[1])
		if err != nil {
			return nil, err
		}
		return &trust{newest: a}, nil
	}
	if len(chain) == 2 || hashKey(chain[3]) != hash {
		return nil, ErrForeignMesh
	}
	former, err := newAuthority(chain[3])
	if err != nil {
		return nil, err
	}
	newest, err := newAuthority(chain[1])
	if err != nil {
		return nil, err
	}
	if !former.vouches(newest, chain[2]) {
		return nil, ErrForeignMesh
	}
	return &trust{newest: newest, former: former, link: chain[2]}, nil
}

// marshal returns the content of caFile: the newest authority's certificate, then the link and the
// former's.
func (t *trust) marshal() []byte {
	b := pem.EncodeToMemory(&pem.Block{Type: pemCert, Bytes: t.newest.cert.Raw})
	if t.former != nil {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: pemCert, Bytes: t.link.Raw})...)
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: pemCert, Bytes: t.former.cert.Raw})...)
	}
	return b
}

func parseTrust(b []byte) (*trust, error) {
	blocks, err := parsePEM(b, pemCert)
	if err != nil {
		if blocks, err = parsePEM(b, pemCert, pemCert, pemCert); err != nil {
			return nil, err
		}
	}
	certs := make([]*x509.Certificate, len(blocks))
	for i, der := range blocks {
		if certs[i], err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
	}
	t := new(trust)
	if t.newest, err = newAuthority(certs[0]); err != nil || len(certs) == 1 {
		return t, err
	}
	if t.former, err = newAuthority(certs[2]); err != nil {
		return nil, err
	}
	if t.link = certs[1]; !t.former.vouches(t.newest, t.link) {
		return nil, errMismatch
	}
	return t, nil
}

// adopt returns the credential in a chain. It returns an error unless the chain is
// valid for this mesh, node and key.
func (t *trust) adopt(chain [][]byte, key ed25519.PrivateKey, id string, now time.Time) (*credential, error) {
	certs, err := parseChain(chain)
	if err != nil {
		return nil, err
	}
	leaf, a := certs[0], t.find(certs[1])
	if a == nil {
		return nil, ErrForeignMesh
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		got, err := a.verify(leaf, use, now)
		if err != nil {
			return nil, err
		}
		if got != id {
			return nil, fmt.Errorf("%w: it is for node %s, this is node %s", ErrWrongID, got, id)
		}
	}
	return newCredential(key, leaf, a.hash)
}
