package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Grant is the mesh's answer to a newcomer that it admits.
type Grant struct {
	MeshID string      `json:"mesh"`
	Chain  [][]byte    `json:"chain"` // from Sign
	Keys   []GossipKey `json:"keys"`  // the one in use first
	Peers  []Peer      `json:"peers"`
}

// Peer is a member that the newcomer may contact.
type Peer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// Request is a newcomer's request to join: an id and a key not in a mesh yet.
type Request struct {
	dir      string
	name, id string
	key      ed25519.PrivateKey
	csr      []byte
}

// pending is the content of the file that stores a request.
type pending struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Key  []byte `json:"key"` // PKCS #8
}

// NewRequest prepares to join under this name. It stores the request on disk before
// returning it, and returns the same one again until it is accepted. A newcomer that
// crashes after being admitted, without knowing it, is thus admitted again and does not
// find its own name taken.
func NewRequest(dir, name string) (*Request, error) {
	dir = filepath.Clean(dir)
	if err := vacant(dir); err != nil {
		return nil, err
	}
	r, err := loadRequest(dir)
	if err != nil {
		return nil, err
	}
	if r != nil && r.name == name {
		return r, nil
	}
	r = &Request{dir: dir, name: name, id: newID()}
	if r.key, r.csr, err = newLeafKey(r.id); err != nil {
		return nil, err
	}
	if err := r.save(); err != nil {
		return nil, fmt.Errorf("save the request to join: %w", err)
	}
	return r, nil
}

// Asked returns the name in the request that waits for its answer in the directory, or "" if
// there is none.
func Asked(dir string) (string, error) {
	r, err := loadRequest(filepath.Clean(dir))
	if r == nil {
		return "", err
	}
	return r.name, nil
}

func (r *Request) save() error {
	der, err := encodeKey(r.key)
	if err != nil {
		return err
	}
	b, err := json.Marshal(pending{ID: r.id, Name: r.name, Key: der})
	if err != nil {
		return err
	}
	if err := makeParent(r.dir); err != nil {
		return err
	}
	return replaceFile(r.dir+pendingSuffix, b)
}

// loadRequest returns nil if there is no stored request.
func loadRequest(dir string) (*Request, error) {
	path := dir + pendingSuffix
	b, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("read the request to join: %w", err)
	}
	if err == nil {
		var r *Request
		if r, err = parseRequest(dir, b); err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s is %w (%w): remove it to ask anew, under another name if this one is taken by then", path, ErrDamaged, err)
}

func parseRequest(dir string, b []byte) (*Request, error) {
	var p pending
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, err
	}
	if !validID(p.ID) || p.Name == "" {
		return nil, errors.New("id or name is missing")
	}
	key, err := parseKey(p.Key)
	if err != nil {
		return nil, err
	}
	csr, err := newCSR(key, p.ID)
	if err != nil {
		return nil, err
	}
	return &Request{dir: dir, name: p.Name, id: p.ID, key: key, csr: csr}, nil
}

// ID returns the newcomer's future id.
func (r *Request) ID() string { return r.id }

// CSR returns the signing request.
func (r *Request) CSR() []byte { return r.csr }

// PublicKeyHash returns the digest of the request's key.
func (r *Request) PublicKeyHash() string {
	return publicKeyHash(r.key.Public().(ed25519.PublicKey))
}

// Accept creates an identity from an answer that proves to come from the mesh that the
// token pins, or from one whose authority that one vouches for, and writes it to disk. Any other answer changes nothing, and the request
// may be repeated.
func (r *Request) Accept(g Grant, caHash [sha256.Size]byte) (*Identity, error) {
	if err := vacant(r.dir); err != nil {
		return nil, err
	}
	certs, err := parseChain(g.Chain)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	trust, err := pinned(certs, caHash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	if g.MeshID != trust.newest.meshID {
		return nil, fmt.Errorf("%w: it names another mesh than its certificates", ErrGrant)
	}
	c, err := trust.adopt(g.Chain, r.key, r.id, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	if err := checkGossipKeys(g.Keys); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	i := &Identity{
		authorities: authorities{dir: r.dir}, name: r.name, id: r.id, resetKey: newResetKey(), keys: copyGossipKeys(g.Keys),
	}
	i.trust.Store(trust)
	i.current.Store(c)
	if err := i.create(); err != nil {
		return nil, err
	}
	return i, nil
}
