package gather

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Bring brings rows of distinct vertices that are elsewhere and are kept for longer than
// a step: they count as of shards. Rows that the source keeps are not looked at. The
// source is ready.
func (s *Source) Bring(ctx context.Context, r *Rows, vertices []uint32, tally *strategy.Tally) error {
	r.Far.Kept = nil
	err := s.lay(r, [][]uint32{vertices}, Options{})
	if err == nil {
		err = s.bring(ctx, r, strategy.Query{Service: strategy.Rows, Kind: strategy.Shard, Part: s.form.Code(), Tally: tally})
	}
	if err != nil {
		return fmt.Errorf("bring rows of features: %w", err)
	}
	return nil
}
