package identity

import (
	"crypto/ed25519"
	"fmt"
)

// Renewal is a new key that awaits its certificate. It exists only in memory: if the
// process ends, the old certificate is valid for as long again.
type Renewal struct {
	identity *Identity
	key      ed25519.PrivateKey
	csr      []byte
}

// Renew makes a new key. Sign issues the certificate for its CSR, on any node that
// holds the authority's key, including this one.
func (i *Identity) Renew() (*Renewal, error) {
	key, csr, err := newLeafKey(i.id)
	if err != nil {
		return nil, err
	}
	return &Renewal{identity: i, key: key, csr: csr}, nil
}

// CSR returns the signing request.
func (r *Renewal) CSR() []byte { return r.csr }

// Adopt replaces the old key and certificate on disk and then in memory. Later
// handshakes show the new ones. A chain that is not valid for this node changes
// nothing.
func (r *Renewal) Adopt(chain [][]byte) error {
	i := r.identity
	c, err := i.trust.Load().adopt(chain, r.key, i.id, i.Now())
	if err != nil {
		return fmt.Errorf("take over the renewed certificate: %w", err)
	}
	b, err := c.marshal()
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := replaceFile(i.path(leafFile), b); err != nil {
		return fmt.Errorf("save the renewed certificate: %w", err)
	}
	i.current.Store(c)
	return nil
}
