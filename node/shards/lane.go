package shards

import (
	"context"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph/direct"
)

const (
	// pieceBytes is the size of a request, and piecesInFlight the number of concurrent
	// requests. With fewer bytes in flight a fast network would idle.
	pieceBytes     = 4 << 20
	piecesInFlight = 4
)

// lane fetches one shard at a time, with the same buffers for all its pieces.
type lane struct {
	bufs [piecesInFlight][]byte
}

// rest frees the buffers while there is nothing to fetch.
func (l *lane) rest() { l.bufs = [piecesInFlight][]byte{} }

// buffer returns the i-th buffer with room for n bytes.
func (l *lane) buffer(i int, n uint64) []byte {
	if uint64(cap(l.bufs[i])) < n {
		l.bufs[i] = direct.Buffer(int(n))
	}
	return l.bufs[i][:n]
}

// stream fetches the missing pieces of a part. Pieces may arrive in any order but are
// written in file order, so that a part is always a prefix of the file and a later
// attempt can continue it. While a piece is hashed and written, others are in flight.
func (l *lane) stream(job *fetch, p *part, network Network) error {
	ctx, stop := context.WithCancel(job.ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	type slot struct {
		piece []byte
		full  chan error    // buffered
		free  chan struct{} // buffered
	}
	var slots [piecesInFlight]slot
	first := p.size
	for i := range slots {
		at := first + uint64(i)*pieceBytes
		if at >= job.want.Bytes {
			break
		}
		s := &slots[i]
		s.full, s.free = make(chan error, 1), make(chan struct{}, 1)
		wg.Go(func() {
			var b [requestBytes]byte
			for ; at < job.want.Bytes; at += piecesInFlight * pieceBytes {
				n := min(job.want.Bytes-at, pieceBytes)
				s.piece = l.buffer(i, n)
				err := network.Fetch(ctx, job.peer, request{job.key, at, n}.append(b[:0]), s.piece)
				s.full <- err
				if err != nil {
					return
				}
				select {
				case <-s.free:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for i := 0; p.size < job.want.Bytes; i = (i + 1) % piecesInFlight {
		if err := <-slots[i].full; err != nil {
			return err
		}
		if err := p.write(slots[i].piece); err != nil {
			return err
		}
		slots[i].free <- struct{}{}
	}
	return nil
}
