package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Options are rarely needed settings.
type Options struct {
	// LeafLife is the validity of certificates that this node signs. Zero means that of
	// this node's own certificate, as chosen by the founder, by default 90 days.
	LeafLife time.Duration
}

// Identity is this node's identity. It is safe for concurrent use.
type Identity struct {
	dir      string
	name, id string
	resetKey [32]byte
	life     time.Duration
	wire     Range // what this node speaks

	// current is replaced by a renewal, and trust by a successor of the authority, after they
	// are on disk.
	current atomic.Pointer[credential]
	trust   atomic.Pointer[trust]

	mu      sync.Mutex         // also held while a file is replaced
	caKey   ed25519.PrivateKey // the newest authority's; nil: this node can't sign
	nextKey ed25519.PrivateKey // of one that the plan may name; nil: there is none
	keys    []GossipKey
}

// Speak sets the versions of the members' protocols that this node speaks, before any TLS
// configuration is made. By default they are those of Wire.
func (i *Identity) Speak(wire Range) { i.wire = wire }

// ID returns this node's id, used in certificates, gossip, Raft and the plan.
func (i *Identity) ID() string { return i.id }

// Name returns this node's name.
func (i *Identity) Name() string { return i.name }

// MeshID returns the id of the authority's mesh.
func (i *Identity) MeshID() string { return i.trust.Load().newest.meshID }

// CAHash returns the digest of the newest authority's public key, by which a token pins it.
func (i *Identity) CAHash() [sha256.Size]byte { return i.trust.Load().newest.hash }

// ResetKey returns the key from which QUIC derives stateless resets. It survives a
// restart, so that a restarted node ends its peers' stale connections at once.
func (i *Identity) ResetKey() [32]byte { return i.resetKey }

// PublicKeyHash returns the digest of the key of this node's current certificate.
func (i *Identity) PublicKeyHash() string {
	return publicKeyHash(i.current.Load().key.Public().(ed25519.PublicKey))
}

// NotAfter returns when this node's certificate expires.
func (i *Identity) NotAfter() time.Time { return i.current.Load().leaf.NotAfter }

// Life returns the validity of this node's certificate.
func (i *Identity) Life() time.Duration { return leafLife(i.current.Load().leaf) }

// RenewAt returns when half of that has passed.
func (i *Identity) RenewAt() time.Time { return i.NotAfter().Add(-i.Life() / 2) }

func leafLife(leaf *x509.Certificate) time.Duration {
	return leaf.NotAfter.Sub(leaf.NotBefore) - backdate
}

// HasCAKey reports whether this node can sign.
func (i *Identity) HasCAKey() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.caKey != nil
}

// CAKey returns the authority's key, for a node that will have to sign.
func (i *Identity) CAKey() ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.caKey == nil {
		return nil, ErrNoCAKey
	}
	der, err := x509.MarshalPKCS8PrivateKey(i.caKey)
	if err != nil {
		return nil, fmt.Errorf("encode the authority's key: %w", err)
	}
	return der, nil
}

// AdoptCAKey stores the result of another node's CAKey on disk and then in memory. A
// key that is not this mesh's changes nothing.
func (i *Identity) AdoptCAKey(der []byte) error {
	key, err := parseKey(der)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrongCAKey, err)
	}
	b, err := marshalKey(key)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.trust.Load().newest.holds(key) {
		return ErrWrongCAKey
	}
	if i.caKey != nil {
		return nil
	}
	if err := replaceFile(i.path(caKeyFile), b); err != nil {
		return fmt.Errorf("save the authority's key: %w", err)
	}
	i.caKey = key
	return nil
}

func (a *authority) holds(key ed25519.PrivateKey) bool {
	public, ok := a.cert.PublicKey.(ed25519.PublicKey)
	return ok && public.Equal(key.Public())
}

// Sign issues a certificate of the newest authority for the node id and the key of the signing
// request, and returns it with what proves it (see trust.chain). The caller must have checked that the
// requester is, or may become, that node.
func (i *Identity) Sign(csr []byte, id string, now time.Time) ([][]byte, error) {
	i.mu.Lock()
	key, t := i.caKey, i.trust.Load()
	i.mu.Unlock()
	if key == nil {
		return nil, ErrNoCAKey
	}
	life := i.life
	if life == 0 {
		life = i.Life()
	}
	leaf, err := t.newest.sign(key, csr, id, now, life)
	if err != nil {
		return nil, err
	}
	return t.chain(leaf, t.newest), nil
}

func (i *Identity) path(file string) string { return filepath.Join(i.dir, file) }

// adopt returns the credential in a chain. It returns an error unless the chain is
// valid for this mesh, node and key.
func (t *trust) adopt(chain [][]byte, key ed25519.PrivateKey, id string) (*credential, error) {
	certs, err := parseChain(chain)
	if err != nil {
		return nil, err
	}
	leaf, a := certs[0], t.find(certs[1])
	if a == nil {
		return nil, ErrForeignMesh
	}
	now := time.Now()
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
