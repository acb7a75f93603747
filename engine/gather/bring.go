package gather

import (
	"context"
	"fmt"
	"iter"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Bring fetches rows of distinct remote vertices that are needed for longer than a step:
// they count as shards. Those that the source keeps are not requested, and those that come
// are kept where they are to be. The caller is between Hold and Release until it has read
// them. The source must be ready.
func (s *Source) Bring(ctx context.Context, r *Rows, vertices []uint32, tally *peer.Tally) error {
	r.Far.Kept = s.Kept()
	err := s.lay(r, [][]uint32{vertices}, Options{})
	if err == nil {
		err = s.bring(ctx, r, peer.Query{Service: peer.Rows, Kind: peer.Shard, Part: s.form.Code(), Tally: tally})
	}
	if err != nil {
		return fmt.Errorf("bring rows of features: %w", err)
	}
	s.keep(r)
	return nil
}

// Hold has rows that are kept stay until Release. It is for those who read them while steps are
// prepared or evaluations run, or at any other time.
func (s *Source) Hold() { s.coming.read.RLock() }

// Release ends what Hold began.
func (s *Source) Release() { s.coming.read.RUnlock() }

// Yield drops all rows that are kept, and reports whether it did: not while anyone holds them.
// Nobody may gather.
func (s *Source) Yield() bool {
	if !s.coming.read.TryLock() {
		return false
	}
	defer s.coming.read.Unlock()
	s.Drop()
	return true
}

// Put keeps dense rows of ascending vertices, which follow each other in raw, as if they had just
// come. The caller is between Hold and Release.
func (s *Source) Put(vertices iter.Seq[uint32], raw []byte) {
	if s.rows == nil {
		return
	}
	bytes, i := s.form.RowBytes(), 0
	for v := range vertices {
		s.put(v, raw[i*bytes:][:bytes])
		i++
	}
}
