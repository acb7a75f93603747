package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A Request is what another node asks with, as the mesh brings it.
type Request interface {
	ReadBody(dst []byte) error
	Reply(count uint64, parts ...[]byte) error
}

var (
	errStranger = errors.New("only members are served shards")
	errNotHere  = errors.New("this shard is not here")
)

// Serve answers a request of length bytes from a proven peer with a piece of a
// whole file.
func (k *Keeper) Serve(ctx context.Context, peer string, length uint64, r Request) error {
	if length != requestBytes {
		return fmt.Errorf("%w: %d bytes", errBadRequest, length)
	}
	var body [requestBytes]byte
	if err := r.ReadBody(body[:]); err != nil {
		return err
	}
	q, err := parseRequest(body[:])
	if err != nil {
		return err
	}
	if err := k.mayRead(peer, q); err != nil {
		return err
	}
	var b []byte
	select {
	case b = <-k.serves:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { k.serves <- b }()
	if b == nil {
		b = make([]byte, pieceBytes)
	}
	f, err := os.Open(k.file(q.key))
	if err == nil {
		_, err = f.ReadAt(b[:q.length], int64(q.offset))
		_ = f.Close()
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) { // gone, or shorter than it was
			k.forget(q.key)
		}
		return fmt.Errorf("read shard %d of %s: %w", q.shard, q.dataset, err)
	}
	return r.Reply(1, b[:q.length])
}

// mayRead compares a request with what is here, and with the plan, before
// anything is opened.
func (k *Keeper) mayRead(peer string, q request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, in := k.plan.Members[peer]; !in {
		return errStranger
	}
	d, in := k.plan.Datasets[q.dataset]
	if !in || q.shard >= len(d.Shards) || !k.holds(q.key, d.Shards[q.shard]) {
		return errNotHere
	}
	if size := d.Shards[q.shard].Bytes; q.offset > size || q.length > size-q.offset {
		return fmt.Errorf("%w: %d bytes at %d of %d", errBadRequest, q.length, q.offset, size)
	}
	return nil
}
