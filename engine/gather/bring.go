package gather

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Bring fetches rows of distinct remote vertices that are kept for longer than a step:
// they count as shards. It does not look at the source's cached rows. The source must
// be ready.
func (s *Source) Bring(ctx context.Context, r *Rows, vertices []uint32, tally *peer.Tally) error {
	r.Far.Kept = nil
	err := s.lay(r, [][]uint32{vertices}, Options{})
	if err == nil {
		err = s.bring(ctx, r, peer.Query{Service: peer.Rows, Kind: peer.Shard, Part: s.form.Code(), Tally: tally})
	}
	if err != nil {
		return fmt.Errorf("bring rows of features: %w", err)
	}
	return nil
}
