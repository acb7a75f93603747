package program

import (
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// WriteNumbers writes the ids and the edges of a prepared slot once more, and returns how
// many vertices and edges that is.
func WriteNumbers(s *slot.Slot) (vertices, drawn int) {
	b := s.Own.(*handed)
	part := func(r desk.Region) []int64 { return desk.Numbers[int64](b.memory.Data[r.Offset:][:r.Bytes]) }
	ids, pairs := part(b.body.NID), part(b.body.Edges)
	for i, v := range s.Sets[0] {
		ids[i] = int64(v)
	}
	n := len(pairs) / 2
	to := edges{sources: pairs[:n], targets: pairs[n:]}
	to.write(s.Groups[0].Batch.Blocks, true)
	return len(ids), n
}
