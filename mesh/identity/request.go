package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// A Grant is what the mesh gives a newcomer.
type Grant struct {
	MeshID string      `json:"mesh"`
	Chain  [][]byte    `json:"chain"` // from Sign
	Keys   []GossipKey `json:"keys"`  // the one in use first
	Peers  []Peer      `json:"peers"`
}

// A Peer is a member that the newcomer may turn to.
type Peer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// A Request is a newcomer's: an id and a key that are not in a mesh yet.
type Request struct {
	dir      string
	name, id string
	key      ed25519.PrivateKey
	csr      []byte
}

// pending is the content of the file that keeps a request.
type pending struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Key  []byte `json:"key"` // PKCS #8
}

// NewRequest prepares to join under this name. The request is on disk before it
// is returned, and asking again returns the same one until it is accepted:
// whoever crashed between being admitted and knowing it is admitted again, rather
// than find its own name taken.
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

func (r *Request) save() error {
	der, err := x509.MarshalPKCS8PrivateKey(r.key)
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

// loadRequest returns nil if there is none.
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

// ID is the id that the newcomer will have.
func (r *Request) ID() string { return r.id }

// CSR is the request to sign.
func (r *Request) CSR() []byte { return r.csr }

// PublicKeyHash names the key of the request.
func (r *Request) PublicKeyHash() string {
	return publicKeyHash(r.key.Public().(ed25519.PublicKey))
}

// Accept makes an identity of an answer that proves to be of the mesh that the
// token pins, and writes it to disk. Anything else changes nothing, and the
// request may be made again.
func (r *Request) Accept(g Grant, caHash [sha256.Size]byte) (*Identity, error) {
	if err := vacant(r.dir); err != nil {
		return nil, err
	}
	_, ca, err := parseChain(g.Chain)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	if hashKey(ca) != caHash {
		return nil, fmt.Errorf("%w: %w", ErrGrant, ErrForeignMesh)
	}
	a, err := newAuthority(ca)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	if g.MeshID != a.meshID {
		return nil, fmt.Errorf("%w: it names another mesh than its certificates", ErrGrant)
	}
	c, err := a.adopt(g.Chain, r.key, r.id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	if err := checkGossipKeys(g.Keys); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrant, err)
	}
	i := &Identity{
		dir: r.dir, name: r.name, id: r.id, authority: a, resetKey: newResetKey(),
		keys: copyGossipKeys(g.Keys),
	}
	i.current.Store(c)
	if err := i.create(); err != nil {
		return nil, err
	}
	return i, nil
}
