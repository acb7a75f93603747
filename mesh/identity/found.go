package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// node is the content of node.json.
type node struct {
	Mesh string `json:"mesh"`
	ID   string `json:"id"`
	Name string `json:"name"`
	// Reset is a digest of the reset key, and Check one of all else here: no certificate proves the
	// name and the reset key. Files from before there were digests have none.
	Reset string `json:"reset,omitempty"`
	Check string `json:"check,omitempty"`
}

// sum returns the digest of what must not change in silence.
func sum(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:8])
}

// checked returns n with its digest.
func (n node) checked() node {
	n.Check = sum(n.Mesh, n.ID, n.Name, n.Reset)
	return n
}

// Found creates a new mesh with this node as its first, in dir.
func Found(dir, name string, opts Options) (*Identity, error) {
	dir = filepath.Clean(dir)
	if err := vacant(dir); err != nil {
		return nil, err
	}
	now := time.Now()
	a, caKey, err := createAuthority(newID(), 0, now)
	if err != nil {
		return nil, err
	}
	id := newID()
	key, csr, err := newLeafKey(id)
	if err != nil {
		return nil, err
	}
	life := opts.LeafLife
	if life == 0 {
		life = defaultLife
	}
	leaf, err := a.sign(caKey, csr, id, now, life)
	if err != nil {
		return nil, err
	}
	t := &trust{newest: a}
	c, err := t.adopt(t.chain(leaf, a), key, id, now)
	if err != nil {
		return nil, err
	}
	i := &Identity{
		authorities: authorities{dir: dir, caKey: caKey}, name: name, id: id, resetKey: newResetKey(), life: opts.LeafLife,
		keys: []GossipKey{NewGossipKey(1)},
	}
	i.trust.Store(t)
	i.current.Store(c)
	if err := i.create(); err != nil {
		return nil, err
	}
	return i, nil
}

func newResetKey() [32]byte { return [32]byte(random(32)) }

func vacant(dir string) error {
	full, err := occupied(dir)
	if err != nil {
		return fmt.Errorf("look for an identity: %w", err)
	}
	if full {
		return fmt.Errorf("%w in %s: start the node without {agent.bootstrap} and {agent.join} to use it", ErrExists, dir)
	}
	return nil
}

// create writes the identity to its directory. It removes a pending join request, which
// this identity answers or which a founder gave up.
func (i *Identity) create() error {
	files, err := i.Files()
	if err != nil {
		return err
	}
	if err := createDir(i.dir, files); err != nil {
		return fmt.Errorf("save the identity: %w", err)
	}
	if err := remove(i.dir + pendingSuffix); err != nil {
		return fmt.Errorf("forget the answered request: %w", err)
	}
	return nil
}

// Files returns what the directory of the identity holds, by name, for a backup: the private keys
// too. No file is of another moment than the others.
func (i *Identity) Files() (map[string][]byte, error) {
	i.authorityMu.Lock()
	defer i.authorityMu.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	files := map[string][]byte{
		caFile:    i.trust.Load().marshal(),
		resetFile: []byte(hex.EncodeToString(i.resetKey[:]) + "\n"),
	}
	var err error
	n := node{Mesh: i.MeshID(), ID: i.id, Name: i.name, Reset: sum(string(i.resetKey[:]))}
	if files[nodeFile], err = json.Marshal(n.checked()); err != nil {
		return nil, fmt.Errorf("encode the identity: %w", err)
	}
	if files[keyringFile], err = json.Marshal(i.keys); err != nil {
		return nil, fmt.Errorf("encode the gossip keys: %w", err)
	}
	if files[leafFile], err = i.current.Load().marshal(); err != nil {
		return nil, err
	}
	for name, key := range map[string]ed25519.PrivateKey{caKeyFile: i.caKey, nextKeyFile: i.nextKey} {
		if key == nil {
			continue
		}
		if files[name], err = marshalKey(key); err != nil {
			return nil, err
		}
	}
	return files, nil
}
