package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"time"
)

// An authority is succeeded by another in these steps, each of which leaves a mesh that works.
//
//   - A node that can sign makes the successor (NewSuccessor). Each node that may have to sign keeps
//     its key (HoldNextCAKey).
//   - The plan names the successor. Each node that reads that accepts both authorities, signs with
//     the key of the new one (Succeed), and renews its certificate. Who has not read it yet accepts
//     the new certificates, since the former authority vouches for the key of the successor.
//   - When all nodes have renewed theirs, the plan says so. Each node that reads that accepts the
//     new authority only (Retire).

// Successor is a new authority of the mesh, whose key the former one has signed.
type Successor struct {
	Serial uint64 // how many have succeeded the founder's
	Cert   []byte // its own certificate
	Link   []byte // the former one's, for the same key
}

// NewSuccessor makes a new authority, and its key in the form of CAKey. It changes nothing here.
func (i *authorities) NewSuccessor(now time.Time) (s Successor, key []byte, err error) {
	i.authorityMu.Lock()
	own := i.caKey
	i.authorityMu.Unlock()
	if own == nil {
		return Successor{}, nil, ErrNoCAKey
	}
	before := i.trust.Load().newest
	next, nextKey, err := createAuthority(before.meshID, before.serial+1, now)
	if err != nil {
		return Successor{}, nil, err
	}
	link, err := issueAuthority(authorityTemplate(before.meshID, before.serial+1, now), before.cert, nextKey.Public().(ed25519.PublicKey), own)
	if err != nil {
		return Successor{}, nil, err
	}
	if key, err = encodeKey(nextKey); err != nil {
		return Successor{}, nil, err
	}
	return Successor{Serial: next.serial, Cert: next.cert.Raw, Link: link.Raw}, key, nil
}

// HoldNextCAKey keeps the key of an authority that the plan may name, on disk. It replaces one that
// was kept before and never named.
func (i *authorities) HoldNextCAKey(der []byte) error {
	key, err := parseKey(der)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrongCAKey, err)
	}
	b, err := marshalKey(key)
	if err != nil {
		return err
	}
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	if i.trust.Load().newest.holds(key) {
		return nil // the plan has named it meanwhile
	}
	if err := replaceFile(i.path(nextKeyFile), b); err != nil {
		return fmt.Errorf("save the next authority's key: %w", err)
	}
	i.nextKey = key
	return nil
}

// Succeed accepts the authority that the plan names, beside the one it succeeds, on disk and then
// in memory. If this node holds its key, it signs with that from now on. One that is no longer the
// newest changes nothing: a node that starts reads the plan from its beginning. Succeed returns
// whether anything is new, and ErrSuccessor if the authority that is trusted here does not vouch for
// it.
func (i *authorities) Succeed(s Successor) (fresh bool, err error) {
	cert, err := x509.ParseCertificate(s.Cert)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrSuccessor, err)
	}
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	was := i.trust.Load()
	if was.newest.cert.Equal(cert) {
		return false, i.takeNextKey()
	}
	next, err := newAuthority(cert)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrSuccessor, err)
	}
	if next.meshID == was.newest.meshID && next.serial < was.newest.serial {
		return false, nil
	}
	link, err := x509.ParseCertificate(s.Link)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrSuccessor, err)
	}
	if !was.newest.vouches(next, link) {
		return false, ErrSuccessor
	}
	now := &trust{newest: next, former: was.newest, link: link}
	if err := replaceFile(i.path(caFile), now.marshal()); err != nil {
		return false, fmt.Errorf("save the authorities: %w", err)
	}
	i.trust.Store(now)
	i.caKey = nil // it is the former's
	if err := i.takeNextKey(); err != nil || i.caKey != nil {
		return true, err
	}
	return true, i.dropKey()
}

// dropKey removes the file of a key that signs no more. It is called with authorityMu held.
func (i *authorities) dropKey() error {
	if err := remove(i.path(caKeyFile)); err != nil {
		return fmt.Errorf("remove the key of an authority that is no longer trusted: %w", err)
	}
	return nil
}

// takeNextKey makes the kept key the one that signs, if it is that of the newest authority. It is
// called with authorityMu held, or by Load.
func (i *authorities) takeNextKey() error {
	if i.caKey != nil || i.nextKey == nil || !i.trust.Load().newest.holds(i.nextKey) {
		return nil
	}
	b, err := marshalKey(i.nextKey)
	if err != nil {
		return err
	}
	if err := replaceFile(i.path(caKeyFile), b); err != nil {
		return fmt.Errorf("save the authority's key: %w", err)
	}
	i.caKey, i.nextKey = i.nextKey, nil
	if err := remove(i.path(nextKeyFile)); err != nil {
		return fmt.Errorf("save the authority's key: %w", err)
	}
	return nil
}

// AuthorityHash returns the digest of the key in an authority's certificate, as CAHash does.
func AuthorityHash(cert []byte) (hash [sha256.Size]byte, err error) {
	c, err := x509.ParseCertificate(cert)
	if err != nil {
		return hash, fmt.Errorf("read an authority's certificate: %w", err)
	}
	return hashKey(c), nil
}

// NextCAKey returns the key that HoldNextCAKey keeps, or nil.
func (i *authorities) NextCAKey() ([]byte, error) {
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	if i.nextKey == nil {
		return nil, nil
	}
	return encodeKey(i.nextKey)
}

// retire ends the trust in the former authority, on disk and then in memory, if this node's
// certificate is of the newest.
func (i *authorities) retire(issuer [sha256.Size]byte) (retired bool, err error) {
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	was := i.trust.Load()
	if was.former == nil || issuer != was.newest.hash {
		return false, nil
	}
	if i.caKey == nil { // else it would belong to no authority that is known here
		if err := i.dropKey(); err != nil {
			return false, err
		}
	}
	now := &trust{newest: was.newest}
	if err := replaceFile(i.path(caFile), now.marshal()); err != nil {
		return false, fmt.Errorf("save the authorities: %w", err)
	}
	i.trust.Store(now)
	return true, nil
}
