package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// authorities are those that a node trusts, and their keys, if it may have to sign. It is safe for
// concurrent use.
type authorities struct {
	dir string
	// trust is replaced by a successor of the authority, after it is on disk.
	trust atomic.Pointer[trust]

	authorityMu sync.Mutex         // also held while a file is replaced
	caKey       ed25519.PrivateKey // of the newest authority; nil if this node can't sign
	nextKey     ed25519.PrivateKey // of an authority that the plan may name; may be nil
}

func (i *authorities) path(file string) string { return filepath.Join(i.dir, file) }

// CASerial returns how many authorities have succeeded the founder's, as far as this node knows.
func (i *authorities) CASerial() uint64 { return i.trust.Load().newest.serial }

// IsNewest reports whether a chain is of the newest authority that this node knows.
func (i *authorities) IsNewest(chain [][]byte) bool {
	return len(chain) > 1 && bytes.Equal(chain[1], i.trust.Load().newest.cert.Raw)
}

// TrustsFormer reports whether the authority before the newest is trusted, too.
func (i *authorities) TrustsFormer() bool { return i.trust.Load().former != nil }

// CAHash returns the digest of the newest authority's public key, by which a token pins it.
func (i *authorities) CAHash() [sha256.Size]byte { return i.trust.Load().newest.hash }

// MeshID returns the id of the authority's mesh.
func (i *authorities) MeshID() string { return i.trust.Load().newest.meshID }

// HasCAKey reports whether this node can sign.
func (i *authorities) HasCAKey() bool {
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	return i.caKey != nil
}

// CAKey returns the authority's key, for a node that will have to sign.
func (i *authorities) CAKey() ([]byte, error) {
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	if i.caKey == nil {
		return nil, ErrNoCAKey
	}
	return encodeKey(i.caKey)
}

// AdoptCAKey stores the result of another node's CAKey on disk and then in memory. A
// key that is not this mesh's changes nothing.
func (i *authorities) AdoptCAKey(der []byte) error {
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

// sign issues a certificate of the newest authority, and returns it with what proves it.
func (i *authorities) sign(csr []byte, id string, now time.Time, life time.Duration) ([][]byte, error) {
	i.authorityMu.Lock()
	key, t := i.caKey, i.trust.Load()
	i.authorityMu.Unlock()
	if key == nil {
		return nil, ErrNoCAKey
	}
	leaf, err := t.newest.sign(key, csr, id, now, life)
	if err != nil {
		return nil, err
	}
	return t.chain(leaf, t.newest), nil
}

func (i *authorities) readCA(b []byte) error {
	t, err := parseTrust(b)
	if err != nil {
		return err
	}
	if t.newest.meshID != i.MeshID() {
		return errMismatch
	}
	i.trust.Store(t)
	return nil
}

func (i *authorities) readCAKey(b []byte) error {
	blocks, err := parsePEM(b, pemKey)
	if err != nil {
		return err
	}
	key, err := parseKey(blocks[0])
	if err != nil {
		return err
	}
	t := i.trust.Load()
	switch {
	case t.newest.holds(key):
		i.caKey = key
	case t.former == nil || !t.former.holds(key):
		return errMismatch
	}
	// A key of the former authority is left if the process ended before it replaced the file. Load
	// then calls takeNextKey.
	return nil
}

// readNextKey reads a key that is kept until the plan names its authority. One that can't be read
// is not missed: the next succession makes another.
func (i *authorities) readNextKey() error {
	b, err := readFile(i.path(nextKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the next authority's key: %w", err)
	}
	if blocks, err := parsePEM(b, pemKey); err == nil {
		if key, err := parseKey(blocks[0]); err == nil {
			i.nextKey = key
		}
	}
	return nil
}
