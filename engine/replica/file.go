package replica

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// landing is how much memory answers are received into before they are written to files; one
// that is larger has as much as it takes.
const landing = 8 << 20

// A filing puts shards that come into files. A nil filing keeps them in memory.
type filing struct {
	cache   *Cache
	buffers chan []byte // those that nobody receives into
	memory  []byte      // of all of them; nil: the system has given none, and each answer has its own
}

// Full is the error of a disk without room for edges.
type Full struct {
	Bytes uint64 // that they take
	Dir   string
	Err   error // nil: nothing was written
	// Needed says that the job can't do without them.
	Needed bool
}

func (e *Full) Error() string {
	if e.Needed {
		return e.cause() + ": free some space there"
	}
	return e.cause() + ": free some space there, or use {topology}=sharded"
}

func (e *Full) Unwrap() error { return e.Err }

// instead is what users are told of a node that does without edges for that reason.
func (e *Full) instead() string {
	return e.cause() + ", so this node asks others for edges, as with {topology}=sharded, and an epoch takes longer: free some space there"
}

func (e *Full) cause() string {
	return fmt.Sprintf("the edges of other nodes' shards take %s of disk, for which the folder %s has no room", budget.Format(e.Bytes), e.Dir)
}

// file returns what puts shards into files, of which so many bytes are missing and the largest
// has so many. It returns a *Full if there is no room for them.
func (c *Cache) file(missing, largest uint64, hands int) (*filing, error) {
	if c.dir == "" || missing == 0 {
		return nil, nil
	}
	free, memory, err := c.Free(c.dir)
	if err == nil && !memory {
		var probe *os.File
		if probe, err = c.create(c.dir, pattern); err == nil {
			err = probe.Close()
		}
	}
	switch {
	case err == nil && !memory && missing > free, unnamed.Full(err):
		return nil, &Full{Bytes: missing, Dir: c.dir, Err: err}
	case err != nil || memory:
		return nil, nil //nolint:nilerr // there is memory in place of such files
	}
	hands = max(1, min(hands, int(landing/max(1, largest))))
	f := &filing{cache: c, buffers: make(chan []byte, hands), memory: reserve(hands * int(largest))}
	for i := range hands {
		var b []byte
		if f.memory != nil {
			b = f.memory[i*int(largest) : (i+1)*int(largest) : (i+1)*int(largest)]
		}
		f.buffers <- b
	}
	return f, nil
}

// reserve maps memory, or returns nil if the system gives none.
func reserve(bytes int) []byte {
	if budget.Room(bytes) != nil {
		return nil
	}
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	budget.Outside(bytes)
	return b
}

// close gives back the memory that answers came into. Nobody may receive any more.
func (f *filing) close() error {
	if f == nil || f.memory == nil {
		return nil
	}
	budget.Outside(-len(f.memory))
	return unix.Munmap(f.memory)
}

// receive calls ask with memory for an answer, and returns the answer where it lies from then
// on: mapped, if it is in a file.
func (f *filing) receive(ctx context.Context, ask func(to []byte) ([]byte, error)) (answer []byte, mapped bool, err error) {
	if f == nil {
		answer, err = ask(nil)
		return answer, false, err
	}
	var b []byte
	select {
	case b = <-f.buffers:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { f.buffers <- b }()
	if answer, err = ask(b); err != nil || len(answer) == 0 {
		return nil, false, err
	}
	answer, err = f.put(answer)
	return answer, err == nil, err
}

// put writes bytes to a file of their own and maps it.
func (f *filing) put(all []byte) (mapping []byte, err error) {
	file, err := f.cache.create(f.cache.dir, pattern)
	if err != nil {
		return nil, fmt.Errorf("make a file for edges: %w", err)
	}
	if _, err = file.Write(all); err == nil {
		mapping, err = unnamed.Map(file, len(all))
	}
	if err = errors.Join(err, file.Close()); err == nil {
		return mapping, nil
	}
	if mapping != nil {
		err = errors.Join(err, unnamed.Unmap(mapping))
	}
	return nil, fmt.Errorf("keep edges in a file of the folder %s: %w", f.cache.dir, err)
}

const pattern = "edges-*.tmp"
