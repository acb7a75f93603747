package identity

import (
	"crypto/ed25519"
	"fmt"
)

// A Renewal is a new key on its way to a certificate. It is forgotten with the
// process: the old certificate is good for as long again.
type Renewal struct {
	identity *Identity
	key      ed25519.PrivateKey
	csr      []byte
}

// Renew makes a new key. The certificate for its CSR comes from Sign, on any node
// that holds the authority's key: this one too.
func (i *Identity) Renew() (*Renewal, error) {
	key, csr, err := newLeafKey(i.id)
	if err != nil {
		return nil, err
	}
	return &Renewal{identity: i, key: key, csr: csr}, nil
}

// CSR is the request to sign.
func (r *Renewal) CSR() []byte { return r.csr }

// Adopt puts key and certificate in the place of the old ones, on disk and then
// here: handshakes from now on show them. A chain that is not good for this node
// changes nothing.
func (r *Renewal) Adopt(chain [][]byte) error {
	i := r.identity
	c, err := i.authority.adopt(chain, r.key, i.id)
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
