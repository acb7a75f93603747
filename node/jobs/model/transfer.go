package model

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/peers"
)

// Flag marks a question for a piece of a checkpoint, of kind mesh.Model.
const Flag = peers.Flag + 1

const (
	pieceBytes = 4 << 20
	// maxModel bounds a checkpoint that is taken from another node.
	maxModel = 64 << 30
	// attempts bounds how often a fetch starts over because the job has written another
	// checkpoint meanwhile.
	attempts = 8
	// maxServes bounds how many pieces are read for others at once.
	maxServes = 4
	// reasonChanged means that the checkpoint was replaced since the first piece,
	// reasonUnreadable that the disk failed.
	reasonChanged    = "changed"
	reasonUnreadable = "unreadable"
)

// request asks for a piece of a job's checkpoint. On the wire, little-endian: the job's
// key (4 bytes), the mark of the file, 0 at first, and the offset (8 each). The answer
// holds the file's mark, its size and the piece.
type request struct {
	key    string // 8 hex digits
	mark   uint64
	offset uint64
}

const (
	keyBytes     = 4
	requestBytes = keyBytes + 8 + 8
	headBytes    = 8 + 8
)

// bytes encodes a request. Its key comes from the plan, so it is hex of fixed length.
func (q request) bytes() []byte {
	b := make([]byte, keyBytes, requestBytes)
	_, _ = hex.Decode(b, []byte(q.key[:min(2*keyBytes, len(q.key))]))
	b = binary.LittleEndian.AppendUint64(b, q.mark)
	return binary.LittleEndian.AppendUint64(b, q.offset)
}

func parseRequest(b *[requestBytes]byte) request {
	return request{
		key:    hex.EncodeToString(b[:keyBytes]),
		mark:   binary.LittleEndian.Uint64(b[keyBytes:]),
		offset: binary.LittleEndian.Uint64(b[keyBytes+8:]),
	}
}

// Serve answers another node with a piece of a checkpoint.
func (m *Models) Serve(ctx context.Context, r *mesh.Request) error {
	if r.Length != requestBytes {
		return fmt.Errorf("%w: a request for a model in %d bytes", mesh.ErrProtocol, r.Length)
	}
	var b [requestBytes]byte
	if err := r.ReadBody(b[:]); err != nil {
		return err
	}
	s, q := m.cfg.Plan.State(), parseRequest(&b)
	if _, in := s.Members[r.Peer]; !in {
		return mesh.Refuse(lead.Invalid, "node %s is no member", r.Peer)
	}
	select {
	case m.serves <- struct{}{}:
		defer func() { <-m.serves }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, j := range s.Jobs {
		if j.Key != q.key {
			continue
		}
		head, piece, err := pieceOf(filepath.Join(m.cfg.Runner.Folder(j), train.CheckpointFile), q)
		switch {
		case err == nil:
			return r.Reply(1, head, piece)
		case errors.Is(err, fs.ErrNotExist):
			return mesh.Refuse(lead.NotFound, "it has no checkpoint of job %s", j.ID)
		case errors.Is(err, mesh.ErrProtocol), mesh.RefusalOf(err) != "":
			return err
		}
		return mesh.Refuse(reasonUnreadable, "it can't read the checkpoint: %v", err)
	}
	return mesh.Refuse(lead.NotFound, "it knows no such job")
}

// pieceOf reads a piece of a checkpoint. It fails if the checkpoint was replaced.
func pieceOf(path string, q request) (head, piece []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size, mark := uint64(info.Size()), markOf(info)
	switch {
	case q.mark != 0 && q.mark != mark:
		return nil, nil, mesh.Refuse(reasonChanged, "the job has written another checkpoint meanwhile")
	case q.offset > size:
		return nil, nil, fmt.Errorf("%w: a piece at %d of %d", mesh.ErrProtocol, q.offset, size)
	}
	piece = make([]byte, min(size-q.offset, pieceBytes))
	if _, err := f.ReadAt(piece, int64(q.offset)); err != nil {
		return nil, nil, err
	}
	head = binary.LittleEndian.AppendUint64(nil, mark)
	return binary.LittleEndian.AppendUint64(head, size), piece, nil
}

// markOf returns a mark that identifies a checkpoint file. A file that replaces it has
// another mark.
func markOf(info fs.FileInfo) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, info.Size(), " ", info.ModTime().UnixNano())
	return max(h.Sum64(), 1)
}

// fetch takes a job's checkpoint from another node.
func (m *Models) fetch(ctx context.Context, peer string, j plan.Job, path string) error {
	return take(j.Key, path, func(q request, buf []byte) ([]byte, error) {
		return m.cfg.Mesh.Fetch(ctx, peer, mesh.Question{
			Header: mesh.Header{Kind: mesh.Model, Flags: Flag, Count: 1}, Body: q.bytes(), Into: buf, Limit: headBytes + pieceBytes,
		})
	})
}

// take fetches a checkpoint. It starts over when the job has written another one.
func take(key, path string, fetch func(q request, buf []byte) ([]byte, error)) (err error) {
	for range attempts {
		if err = takeOnce(key, path, fetch); mesh.RefusalOf(err) != reasonChanged {
			return err
		}
	}
	return err
}

// errKeeping marks failures of this node's disk, as opposed to another node's.
var errKeeping = errors.New("keep the model for a while")

// takeOnce writes one checkpoint to a file, piece by piece.
func takeOnce(key, path string, fetch func(q request, buf []byte) ([]byte, error)) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", errKeeping, err)
	}
	defer func() {
		if closeErr := f.Close(); closeErr != nil && err == nil {
			err = fmt.Errorf("%w: %w", errKeeping, closeErr)
		}
	}()
	var buf []byte
	size, q := uint64(0), request{key: key}
	for q.offset == 0 || q.offset < size {
		if buf, err = fetch(q, buf); err != nil {
			return err
		}
		if len(buf) <= headBytes {
			return fmt.Errorf("%w: a piece of a model without content", mesh.ErrProtocol)
		}
		mark, whole, piece := binary.LittleEndian.Uint64(buf), binary.LittleEndian.Uint64(buf[8:]), buf[headBytes:]
		if q.offset == 0 {
			q.mark, size = mark, whole
		}
		if mark != q.mark || whole != size || size > maxModel || uint64(len(piece)) != min(size-q.offset, pieceBytes) {
			return fmt.Errorf("%w: a piece of %d bytes of a model at %d of %d", mesh.ErrProtocol, len(piece), q.offset, size)
		}
		if _, err := f.Write(piece); err != nil {
			return fmt.Errorf("%w: %w", errKeeping, err)
		}
		q.offset += uint64(len(piece))
	}
	return nil
}
