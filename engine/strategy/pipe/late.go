package pipe

import (
	"sort"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// late is what a grain keeps of the gradients at rows of other positions, where the last
// epoch's stand for what is lost: what it finds at rows whose turn backward was before
// its own comes too late for them.
type late struct {
	position  int             // of the grain
	positions []int           // of each such row
	kept      []tensor.Matrix // of the last epoch, by the worker's stages
	// Of the epoch under way: which of those rows have their turn before, and where they
	// lie in the way's rows.
	picks, rows []int32
	from        [1]tensor.Part // what is gathered from: a list of its own would be on the heap
}

// keepsLate says whether gradients are kept from one epoch for the next.
func (w *Worker) keepsLate() bool { return w.Kept && w.Shape.Positions() > 1 }

// keepLate makes room for them, with zeros.
func (w *Worker) keepLate() {
	if !w.keepsLate() {
		return
	}
	w.turns = make([]int, w.Shape.Positions())
	for _, way := range w.ways {
		for position, grains := range way.at {
			for _, g := range grains {
				n := len(g.rows) - g.active
				g.late = late{position: position, kept: make([]tensor.Matrix, w.end-w.first), picks: make([]int32, 0, n), rows: make([]int32, 0, n)}
				for _, v := range g.block.Vertices[g.active:] {
					g.late.positions = append(g.late.positions, w.Shape.positionOf(v))
				}
				for s := w.first; s < w.end; s++ {
					if w.sees(s) {
						m := w.kept.Alloc(w.Device.Type(), n, w.infos[s].In)
						w.Device.Zero(m)
						g.late.kept[s-w.first] = m
					}
				}
			}
		}
	}
}

// standIn has each grain begin an epoch with what the last one found at rows that will
// have their turn backward before it.
func (w *Worker) standIn() {
	if !w.keepsLate() {
		return
	}
	for place, position := range w.order {
		w.turns[position] = place
	}
	for _, way := range w.ways {
		for _, g := range way.grains {
			g.late.choose(w.turns, g.rows[g.active:])
			if len(g.late.picks) == 0 {
				continue
			}
			for i, l := range way.levels {
				if l == nil {
					continue
				}
				w.spare.Reset()
				x := w.spare.Alloc(w.Device.Type(), len(g.late.picks), l.rows.Cols)
				g.late.from[0].X = g.late.kept[i]
				w.Device.Gather(x, g.late.from[:], unsigned(g.late.picks))
				w.Device.ScatterAdd(l.back, x, g.late.rows)
			}
		}
	}
}

// choose finds the rows of others that go back before the grain: those that go forward
// after it.
func (l *late) choose(turns []int, rows []int32) {
	l.picks, l.rows = l.picks[:0], l.rows[:0]
	for i, position := range l.positions {
		if turns[position] > turns[l.position] {
			l.picks, l.rows = append(l.picks, int32(i)), append(l.rows, rows[i])
		}
	}
}

// keep keeps what a grain has found for the next epoch.
func (w *Worker) keep(g *grain, s int, dseen tensor.Matrix) {
	if n := len(g.rows) - g.active; w.keepsLate() && n > 0 {
		w.Device.Combine(g.late.kept[s-w.first], 1, dseen.RowRange(g.active, n), 0, tensor.Matrix{})
	}
}

// positionOf is where in its way a vertex has its turn.
func (s *Shape) positionOf(v uint32) int {
	shard := sort.Search(len(s.firsts)-1, func(i int) bool { return s.firsts[i+1] > v })
	chunk := sort.Search(s.Chunks(), func(c int) bool { return s.chunks[c+1] > shard })
	return chunk - s.ways[s.WayOf(shard)]
}
