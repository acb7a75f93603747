package build

import (
	"context"
	"encoding/binary"
	"sync"

	"golang.org/x/sync/errgroup"
)

// farRuns reads runs on another node. What memory allows is kept for the next pass.
type farRuns struct {
	ctx  context.Context
	c    *conductor
	node int
}

// kept is what farRuns keep of the edges: nothing is read twice as long as there is room.
type kept struct {
	mu     sync.Mutex
	room   uint64
	pieces map[place][]byte
}

type place struct {
	node int
	at   int64
}

func (k *kept) get(at place, n int) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b := k.pieces[at]; len(b) == n {
		return b
	}
	return nil
}

// put keeps a piece. It may not be changed any more.
func (k *kept) put(at place, b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := uint64(cap(b)) + 64; k.pieces[at] == nil && n <= k.room {
		k.room -= n
		k.pieces[at] = b
	}
}

// farReads is how many pieces are read at once.
const farReads = 4

func (f farRuns) read(to []byte, from int64) error {
	g, ctx := errgroup.WithContext(f.ctx)
	g.SetLimit(farReads)
	for done := 0; done < len(to) && ctx.Err() == nil; done += pieceBytes {
		piece, at := to[done:min(len(to), done+pieceBytes)], from+int64(done)
		if in := f.c.kept.get(place{f.node, at}, len(piece)); in != nil {
			copy(piece, in)
			continue
		}
		g.Go(func() error {
			m := f.c.message(sayRead)
			m = binary.LittleEndian.AppendUint64(m, uint64(at))
			m = binary.LittleEndian.AppendUint64(m, uint64(len(piece)))
			in, _, err := f.c.say(ctx, f.node, m)
			if err != nil {
				return err
			}
			if len(in) != len(piece) {
				return errMessage
			}
			copy(piece, in)
			f.c.kept.put(place{f.node, at}, in)
			return nil
		})
	}
	return g.Wait()
}
