package shards

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph/direct"
	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
)

// part is a prefix of a shard's file, and its hash so far.
type part struct {
	file   *os.File
	direct direct.Writer
	size   uint64
	hash   *quicksum.Hash
}

func newPart(f *os.File) *part { return &part{file: f, hash: quicksum.New()} }

// openPart continues the part of an earlier attempt, if there is one. It computes the
// hash from the disk, since data written before a crash may be missing.
func openPart(path string, size uint64, l *lane) (*part, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	p := newPart(f)
	p.direct = direct.Open(f.Name())
	if err := p.reread(size, l); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: read what was fetched before: %w", errDisk, err), p.leave())
	}
	return p, nil
}

// reread hashes at most limit bytes of the existing file, and truncates the rest.
func (p *part) reread(limit uint64, l *lane) error {
	for p.size < limit {
		b := l.buffer(0, min(limit-p.size, pieceBytes))
		n, err := p.file.Read(b)
		_, _ = p.hash.Write(b[:n])
		p.size += uint64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return p.file.Truncate(int64(p.size))
}

func (p *part) write(b []byte) error {
	_, _ = p.hash.Write(b)
	if !p.direct.WriteAt(b, int64(p.size)) {
		if _, err := p.file.WriteAt(b, int64(p.size)); err != nil {
			return fmt.Errorf("%w: %w", errDisk, err)
		}
	}
	p.size += uint64(len(b))
	return nil
}

// leave closes the part for a later attempt.
func (p *part) leave() error {
	p.direct.Close()
	return p.file.Close()
}

// check returns an error, and removes the part, unless its hash is the plan's.
func (p *part) check(want string) error {
	if digest, _ := p.hash.Digest(); digest != want {
		return errors.Join(errDamaged, p.leave(), os.Remove(p.file.Name()))
	}
	return nil
}

// seal syncs the file and gives it its final name.
func (p *part) seal(path string) error {
	err := errors.Join(p.file.Sync(), p.leave())
	if err == nil {
		err = os.Rename(p.file.Name(), path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	if as, there := stampAt(path); there {
		digest, quick := p.hash.Digest()
		mark(path, digest, quick, as) // so that it is verified faster
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
