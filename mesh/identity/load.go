package identity

import (
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Load reads the identity in dir. It also loads one whose certificate has expired: a
// node that holds the authority's key can renew it by itself.
func Load(dir string, opts Options) (*Identity, error) {
	dir = filepath.Clean(dir)
	full, err := occupied(dir)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	if !full {
		return nil, fmt.Errorf("%w in %s", ErrNone, dir)
	}
	i := &Identity{authorities: authorities{dir: dir}, life: opts.LeafLife}
	for _, part := range []struct {
		file string
		read func([]byte) error
	}{
		// Each function checks its file against the previous ones.
		{nodeFile, i.readNode},
		{caFile, i.readCA},
		{leafFile, i.readLeaf},
		{resetFile, i.readReset},
		{keyringFile, i.readKeyring},
		{caKeyFile, i.readCAKey},
	} {
		b, err := readFile(i.path(part.file))
		if part.file == caKeyFile && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = part.read(b)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("read the identity: %w", err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s is %w (%w): restore it from a backup, or move the whole data directory away, run {force-leave} for the node on another one, and join anew with a fresh token",
				i.path(part.file), ErrDamaged, err)
		}
	}
	if err := i.readNextKey(); err != nil {
		return nil, err
	}
	return i, i.takeNextKey()
}

var errMismatch = errors.New("it does not belong to the files beside it")

func (i *Identity) readNode(b []byte) error {
	var n node
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	if !validID(n.ID) || !validID(n.Mesh) || n.Name == "" {
		return errors.New("mesh, id or name is missing")
	}
	if n.Check != "" && n != n.checked() {
		return errors.New("its digest is of other content")
	}
	i.id, i.name, i.resetSum = n.ID, n.Name, n.Reset
	i.trust.Store(&trust{newest: &authority{meshID: n.Mesh}})
	return nil
}

func (i *Identity) readLeaf(b []byte) error {
	blocks, err := parsePEM(b, pemKey, pemCert)
	if err != nil {
		return err
	}
	key, err := parseKey(blocks[0])
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(blocks[1])
	if err != nil {
		return err
	}
	var foreign error
	for _, a := range i.trust.Load().all() {
		id, err := a.verify(leaf, x509.ExtKeyUsageAny, leaf.NotAfter)
		if err != nil {
			foreign = err
			continue
		}
		if id != i.id {
			return errMismatch
		}
		c, err := newCredential(key, leaf, a.hash)
		if err != nil {
			return err
		}
		i.current.Store(c)
		return nil
	}
	return foreign
}

func (i *Identity) readReset(b []byte) error {
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil {
		return err
	}
	if len(key) != len(i.resetKey) {
		return fmt.Errorf("it holds %d bytes instead of %d", len(key), len(i.resetKey))
	}
	if i.resetSum != "" && i.resetSum != sum(string(key)) {
		return errMismatch
	}
	i.resetKey = [32]byte(key)
	return nil
}

func (i *Identity) readKeyring(b []byte) (err error) {
	i.keys, err = parseGossipKeys(b)
	return err
}
