package node

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
)

// This file is how a node gets the checkpoint of a job from another.

const (
	modelPiece = 4 << 20
	// maxModel bounds a checkpoint that is taken from another node.
	maxModel = 64 << 30
	// modelAttempts bounds how often a fetch begins anew because the job has written
	// another checkpoint meanwhile.
	modelAttempts = 8
	// maxModelServes bounds how many pieces are read for others at once.
	maxModelServes = 4
	// reasonChanged says that the checkpoint is no longer the one asked for,
	// reasonUnreadable that its disk does not give it.
	reasonChanged    = "changed"
	reasonUnreadable = "unreadable"
)

// A modelRequest asks for a piece of a job's checkpoint. On the wire: the job's key (4
// bytes), the mark of the file, 0 at first, and the offset (8 each), little-endian.
// What comes back is the file's mark, its size and the piece.
type modelRequest struct {
	key    string // 8 hex digits
	mark   uint64
	offset uint64
}

const (
	modelKey          = 4
	modelRequestBytes = modelKey + 8 + 8
	modelHeadBytes    = 8 + 8
)

// bytes needs a key of the plan's, which is hex of fixed length.
func (q modelRequest) bytes() []byte {
	b := make([]byte, modelKey, modelRequestBytes)
	_, _ = hex.Decode(b, []byte(q.key[:min(2*modelKey, len(q.key))]))
	b = binary.LittleEndian.AppendUint64(b, q.mark)
	return binary.LittleEndian.AppendUint64(b, q.offset)
}

func parseModelRequest(b *[modelRequestBytes]byte) modelRequest {
	return modelRequest{
		key:    hex.EncodeToString(b[:modelKey]),
		mark:   binary.LittleEndian.Uint64(b[modelKey:]),
		offset: binary.LittleEndian.Uint64(b[modelKey+8:]),
	}
}

// serveModel answers with a piece of a checkpoint.
func (m *member) serveModel(ctx context.Context, r *mesh.Request) error {
	if r.Length != modelRequestBytes {
		return fmt.Errorf("%w: a request for a model in %d bytes", mesh.ErrProtocol, r.Length)
	}
	var b [modelRequestBytes]byte
	if err := r.ReadBody(b[:]); err != nil {
		return err
	}
	s, q := m.plan.State(), parseModelRequest(&b)
	if _, in := s.Members[r.Peer]; !in {
		return mesh.Refuse(reasonInvalid, "node %s is no member", r.Peer)
	}
	select {
	case m.modelServes <- struct{}{}:
		defer func() { <-m.modelServes }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, j := range s.Jobs {
		if j.Key != q.key {
			continue
		}
		head, piece, err := pieceOf(filepath.Join(m.runner.Folder(j), train.CheckpointFile), q)
		switch {
		case err == nil:
			return r.Reply(1, head, piece)
		case errors.Is(err, fs.ErrNotExist):
			return mesh.Refuse(reasonNotFound, "it has no checkpoint of job %s", j.ID)
		case errors.Is(err, mesh.ErrProtocol), mesh.RefusalOf(err) != "":
			return err
		}
		return mesh.Refuse(reasonUnreadable, "it can't read the checkpoint: %v", err)
	}
	return mesh.Refuse(reasonNotFound, "it knows no such job")
}

// pieceOf reads a piece of a checkpoint, if it is still the one that is meant.
func pieceOf(path string, q modelRequest) (head, piece []byte, err error) {
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
	piece = make([]byte, min(size-q.offset, modelPiece))
	if _, err := f.ReadAt(piece, int64(q.offset)); err != nil {
		return nil, nil, err
	}
	head = binary.LittleEndian.AppendUint64(nil, mark)
	return binary.LittleEndian.AppendUint64(head, size), piece, nil
}

// markOf tells one checkpoint from the next in its place.
func markOf(info fs.FileInfo) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, info.Size(), " ", info.ModTime().UnixNano())
	return max(h.Sum64(), 1)
}

// fetchModel takes a job's checkpoint from another node.
func (m *member) fetchModel(ctx context.Context, peer string, j plan.Job, path string) error {
	return takeModel(j.Key, path, func(q modelRequest, buf []byte) ([]byte, error) {
		return m.mesh.Fetch(ctx, peer, mesh.Question{
			Header: mesh.Header{Kind: mesh.Model, Flags: flagModel, Count: 1}, Body: q.bytes(), Into: buf, Limit: modelHeadBytes + modelPiece,
		})
	})
}

// takeModel begins anew when the job has written another checkpoint.
func takeModel(key, path string, fetch func(q modelRequest, buf []byte) ([]byte, error)) (err error) {
	for range modelAttempts {
		if err = takeOneModel(key, path, fetch); mesh.RefusalOf(err) != reasonChanged {
			return err
		}
	}
	return err
}

// errKeeping marks trouble with this node's disk, for which no other node is to blame.
var errKeeping = errors.New("keep the model for a while")

// takeOneModel writes one checkpoint to a file, piece by piece.
func takeOneModel(key, path string, fetch func(q modelRequest, buf []byte) ([]byte, error)) (err error) {
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
	size, q := uint64(0), modelRequest{key: key}
	for q.offset == 0 || q.offset < size {
		if buf, err = fetch(q, buf); err != nil {
			return err
		}
		if len(buf) <= modelHeadBytes {
			return fmt.Errorf("%w: a piece of a model without content", mesh.ErrProtocol)
		}
		mark, whole, piece := binary.LittleEndian.Uint64(buf), binary.LittleEndian.Uint64(buf[8:]), buf[modelHeadBytes:]
		if q.offset == 0 {
			q.mark, size = mark, whole
		}
		if mark != q.mark || whole != size || size > maxModel || uint64(len(piece)) != min(size-q.offset, modelPiece) {
			return fmt.Errorf("%w: a piece of %d bytes of a model at %d of %d", mesh.ErrProtocol, len(piece), q.offset, size)
		}
		if _, err := f.Write(piece); err != nil {
			return fmt.Errorf("%w: %w", errKeeping, err)
		}
		q.offset += uint64(len(piece))
	}
	return nil
}
