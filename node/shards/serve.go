package shards

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
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

// serves bounds how many pieces are served at once. The collector frees buffers that are
// not used any more.
type serves struct {
	running chan struct{}
	spare   *sync.Pool // of *[pieceBytes]byte
}

// newServes returns what a node with this bound of its memory serves with: its jobs need
// most of that.
func newServes(memory uint64) serves {
	most := uint64(maxServes)
	if memory > 0 {
		most = min(most, max(2, memory/16/pieceBytes))
	}
	return serves{make(chan struct{}, most), &sync.Pool{New: func() any { return new([pieceBytes]byte) }}}
}

// Serve answers a request of length bytes from an authenticated peer with a piece of a
// complete file.
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
	select {
	case k.serves.running <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-k.serves.running }()
	defer budget.Begin()()
	b := k.serves.spare.Get().(*[pieceBytes]byte)
	defer k.serves.spare.Put(b)
	f, err := os.Open(k.file(q.key))
	if err == nil {
		_, err = f.ReadAt(b[:q.length], int64(q.offset))
		_ = f.Close()
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) { // removed or truncated
			why := whyGone
			if errors.Is(err, io.EOF) {
				why = whyTruncated
			}
			k.forget(q.key, why)
		}
		return fmt.Errorf("read shard %d of %s: %w", q.shard, q.dataset, err)
	}
	return r.Reply(1, b[:q.length])
}

// mayRead checks a request against the plan and this node's files before anything is
// opened.
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

// Verdict is the result of a verification of one shard's file.
type Verdict string

const (
	// Pending means that the file is still being read. Ask again.
	Pending Verdict = "pending"
	Whole   Verdict = "whole"
	// Damaged means that the file was missing or differed from the plan, and was dropped.
	Damaged Verdict = "damaged"
	// Absent means that by this node's plan it does not hold the shard.
	Absent Verdict = "absent"
)

// checks holds the verifications in progress.
type checks struct {
	hashing chan struct{} // bounds how many files are hashed on request at once
	under   map[key]*check
	life    context.Context // Run's; nil before and after
	group   *sync.WaitGroup // what Run waits for
}

// check is one verification.
type check struct {
	done  chan struct{}
	found Verdict // set before done is closed
	err   error
}

// Verify verifies a shard's file. If ctx ends first, it returns Pending and reading goes
// on; a later call waits for the same verification. A damaged file is dropped, so that
// the plan replaces it.
func (k *Keeper) Verify(ctx context.Context, dataset string, shard int) (Verdict, error) {
	f := key{dataset, shard}
	k.mu.Lock()
	d, in := k.plan.Datasets[dataset]
	if !in || shard < 0 || shard >= len(d.Shards) || !d.Holds(k.cfg.Self, shard) {
		k.mu.Unlock()
		return Absent, nil
	}
	c := k.checks.under[f]
	if c == nil {
		if k.checks.life == nil {
			k.mu.Unlock()
			return Pending, nil
		}
		c = &check{done: make(chan struct{})}
		k.checks.under[f] = c
		life, want := k.checks.life, d.Shards[shard]
		k.checks.group.Go(func() { k.check(life, f, want, c) })
	}
	k.mu.Unlock()
	select {
	case <-c.done:
		return c.found, c.err
	case <-ctx.Done():
		return Pending, nil
	}
}

func (k *Keeper) check(ctx context.Context, f key, want plan.Shard, c *check) {
	defer close(c.done)
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.checks.under, f)
	}()
	select {
	case k.checks.hashing <- struct{}{}:
		defer func() { <-k.checks.hashing }()
	case <-ctx.Done():
		c.found = Pending
		return
	}
	sum, as, err := hashFile(ctx, k.file(f), nil)
	switch {
	case ctx.Err() != nil:
		c.found = Pending
	case err == nil && sum == want.SHA256:
		c.found = Whole
		k.mu.Lock()
		k.health.whole[f] = as
		k.mu.Unlock()
	case err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errUnreadable):
		c.err = err
	default:
		k.forget(f, whyOf(k.file(f), want, err))
		c.found = Damaged
	}
}
