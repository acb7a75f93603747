package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
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
	name, id string
	resetKey [32]byte
	resetSum string // its digest, as node.json has it; "": none
	life     time.Duration
	wire     Range // what this node speaks
	clock    func() time.Time

	// authorities are those of the mesh.
	authorities
	// current is replaced by a renewal, after it is on disk.
	current atomic.Pointer[credential]

	mu   sync.Mutex // also held while a file is replaced
	keys []GossipKey
}

// Speak sets the versions of the members' protocols that this node speaks, before any TLS
// configuration is made. By default they are those of Wire.
func (i *Identity) Speak(wire Range) { i.wire = wire }

// Follow sets the clock by which this node signs and judges certificates, before any is shown to
// it. By default it is the machine's.
func (i *Identity) Follow(clock func() time.Time) { i.clock = clock }

// Now is what that clock shows. It may have been set meanwhile, so that it says nothing of how
// much time has passed.
func (i *Identity) Now() time.Time {
	if i.clock == nil {
		return time.Now()
	}
	return i.clock()
}

// ID returns this node's id, used in certificates, gossip, Raft and the plan.
func (i *Identity) ID() string { return i.id }

// Name returns this node's name.
func (i *Identity) Name() string { return i.name }

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

// RenewIn returns how long it is until half of that has passed; 0 if it has, or if the certificate
// is from the future, since a clock was wrong.
func (i *Identity) RenewIn() time.Duration {
	now := i.Now()
	if now.Before(i.current.Load().leaf.NotBefore) {
		return 0
	}
	return max(0, i.NotAfter().Add(-i.Life()/2).Sub(now))
}

func leafLife(leaf *x509.Certificate) time.Duration {
	return leaf.NotAfter.Sub(leaf.NotBefore) - backdate
}

// Sign issues a certificate of the newest authority for the node id and the key of the signing
// request, and returns it with what proves it (see trust.chain). The caller must have checked that the
// requester is, or may become, that node.
func (i *Identity) Sign(csr []byte, id string, now time.Time) ([][]byte, error) {
	life := i.life
	if life == 0 {
		life = i.Life()
	}
	return i.authorities.sign(csr, id, now, life)
}

// Retire ends the trust in the former authority. It returns whether there was one. It changes
// nothing while this node's certificate is of that one.
func (i *Identity) Retire() (retired bool, err error) { return i.retire(i.Issuer()) }

// Issuer returns the digest of the key of the authority that issued this node's certificate.
func (i *Identity) Issuer() [sha256.Size]byte { return i.current.Load().issuer }

// Outdated reports whether this node's certificate is of another authority than the newest.
func (i *Identity) Outdated() bool {
	return i.current.Load().issuer != i.trust.Load().newest.hash
}

// Accepts reports whether a chain that a peer showed is of an authority that is trusted now. Whether
// it has expired since does not matter.
func (i *Identity) Accepts(chain []*x509.Certificate) bool {
	if len(chain) == 0 {
		return false
	}
	_, err := i.trust.Load().verify(chain, x509.ExtKeyUsageAny, chain[0].NotAfter)
	return err == nil
}
