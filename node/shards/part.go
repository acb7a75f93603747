package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph/direct"
)

// A part is the beginning of a shard's file, and its hash so far.
type part struct {
	file   *os.File
	direct direct.Writer
	size   uint64
	sum    hash.Hash
}

func newPart(f *os.File) *part { return &part{file: f, sum: sha256.New()} }

// openPart goes on with what an earlier attempt left, if anything. Its hash is
// computed from what is on the disk: what was written before a crash may not be
// there.
func (k *Keeper) openPart(job *fetch, l *lane) (*part, error) {
	if err := os.MkdirAll(k.folder(job.dataset), 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	f, err := os.OpenFile(k.part(job.key), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	p := newPart(f)
	p.direct = direct.Open(f.Name())
	if err := p.reread(job.want.Bytes, l); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: read what was fetched before: %w", errDisk, err), p.leave())
	}
	return p, nil
}

// reread takes in at most limit bytes of what is there, and cuts off the rest.
func (p *part) reread(limit uint64, l *lane) error {
	for p.size < limit {
		b := l.buffer(0, min(limit-p.size, pieceBytes))
		n, err := p.file.Read(b)
		p.sum.Write(b[:n])
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
	p.sum.Write(b)
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

// check throws the part away if it is not what the plan says.
func (p *part) check(want string) error {
	if hex.EncodeToString(p.sum.Sum(nil)) != want {
		return errors.Join(errDamaged, p.leave(), os.Remove(p.file.Name()))
	}
	return nil
}

// seal gives the file its final name, once the disk has it.
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
	return nil
}

// syncFolder makes the names in a folder last.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
