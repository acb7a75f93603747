package shards

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
)

// Request is another node's request, as the mesh delivers it.
type Request interface {
	ReadBody(dst []byte) error
	Reply(count uint64, parts ...[]byte) error
}

var (
	errStranger = errors.New("only members are served shards")
	errNotHere  = errors.New("this shard is not here")
)

// serves bounds how many pieces are served at once, and how many of them to one peer: one that
// reads slowly holds its places for long. The collector frees buffers that are not used any more.
type serves struct {
	running chan struct{}
	spare   sync.Pool // of *[pieceBytes]byte

	mu    sync.Mutex
	peers map[string]*share // those that are served or wait
}

// share is what one peer has of the places.
type share struct {
	running chan struct{}
	users   int // requests that are served or wait
}

// newServes returns what a node with this bound of its memory serves with: its jobs need
// most of that.
func newServes(memory uint64) *serves {
	most := uint64(maxServes)
	if memory > 0 {
		most = min(most, max(2, memory/16/pieceBytes))
	}
	return &serves{running: make(chan struct{}, most), spare: sync.Pool{New: func() any { return new([pieceBytes]byte) }}, peers: map[string]*share{}}
}

// enter waits for a place, of which one peer has at most half. leave gives it back.
func (s *serves) enter(ctx context.Context, peer string) (leave func(), err error) {
	s.mu.Lock()
	own := s.peers[peer]
	if own == nil {
		own = &share{running: make(chan struct{}, max(1, cap(s.running)/2))}
		s.peers[peer] = own
	}
	own.users++
	s.mu.Unlock()
	// Who waits for the peer's own places takes none from others.
	select {
	case own.running <- struct{}{}:
	case <-ctx.Done():
		s.forget(peer, own)
		return nil, context.Cause(ctx)
	}
	select {
	case s.running <- struct{}{}:
	case <-ctx.Done():
		<-own.running
		s.forget(peer, own)
		return nil, context.Cause(ctx)
	}
	return func() {
		<-s.running
		<-own.running
		s.forget(peer, own)
	}, nil
}

// forget ends one request's part in a share, which goes with the last.
func (s *serves) forget(peer string, own *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.peers, peer)
	}
}

// request asks for a piece of a shard's file. On the wire, little-endian: the dataset's
// id (8 bytes), the shard (4), offset and length (8 each).
type request struct {
	key
	offset, length uint64
}

const (
	idBytes      = 8
	requestBytes = idBytes + 4 + 8 + 8
)

var errBadRequest = errors.New("the request for a piece of a shard makes no sense")

// append encodes the request. Its id comes from the plan, so it is hex of fixed length.
func (r request) append(b []byte) []byte {
	var id [idBytes]byte
	_, _ = hex.Decode(id[:], []byte(r.dataset[:min(2*idBytes, len(r.dataset))]))
	b = append(b, id[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.shard))
	b = binary.LittleEndian.AppendUint64(b, r.offset)
	return binary.LittleEndian.AppendUint64(b, r.length)
}

func parseRequest(b []byte) (request, error) {
	if len(b) != requestBytes {
		return request{}, fmt.Errorf("%w: %d bytes", errBadRequest, len(b))
	}
	r := request{
		key:    key{hex.EncodeToString(b[:idBytes]), int(binary.LittleEndian.Uint32(b[idBytes:]))},
		offset: binary.LittleEndian.Uint64(b[idBytes+4:]),
		length: binary.LittleEndian.Uint64(b[idBytes+12:]),
	}
	if r.length == 0 || r.length > pieceBytes {
		return request{}, fmt.Errorf("%w: a piece of %d bytes", errBadRequest, r.length)
	}
	return r, nil
}
