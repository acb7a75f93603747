// Package footprint counts the memory of a pipeline's rows, for its workers and for forecasts of
// nodes that are not there.
package footprint

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
)

const (
	// Ends bounds what a matrix takes beyond its numbers: it begins at a cache line.
	Ends = 128
	// slab is the unit of the processor's arenas.
	slab = 2 << 20
)

// Slabs returns the size of an arena that holds so many bytes.
func Slabs(bytes int) int { return (bytes + slab - 1) / slab * slab }

// Rows is what the memory of the rows of a node depends on, besides its passes.
type Rows struct {
	Number int
	Widths []int // columns of the rows that each of its layers reads of others
	Rows   int   // of its ways, and mirrors
	Own    int   // vertices of its ways
	Most   int   // the most vertices of its ways at a position
	Late   int   // rows of others whose gradients are kept for the next epoch
	Input  int   // columns that come from the stage before, and are kept
	Brief  int   // more of them, which are kept of one position at a time
	// Fleeting reports whether layers take turns in the memory of two.
	Fleeting bool
	Replaced []bool // of the widths: gradients take the memory of rows
	Current  int    // of the widths: the first ones, whose rows are of this epoch wherever there are histories
}

// Kept returns the bytes of rows that live as long as training: those that layers read,
// their gradients and histories, and those received from the stage before.
func (m Rows) Kept() (bytes int) {
	if m.Fleeting && len(m.Widths) > 0 {
		bytes = min(2, len(m.Widths)) * m.Rows * slices.Max(m.Widths) * m.Number
		return bytes + (m.Own*m.Input+m.Most*m.Brief)*m.Number
	}
	for i, width := range m.Widths {
		rows := 2 * m.Rows
		if m.Replaced[i] {
			rows = m.Rows
		}
		if i >= m.Current {
			rows += m.Late
		}
		bytes += rows * width * m.Number
	}
	return bytes + (m.Own*m.Input+m.Most*m.Brief)*m.Number
}

// Replaces reports whether gradients take the memory of the rows that a layer reads, where all
// positions go forward before the first goes back, and nothing reads rows again. Where more than
// the layer reads what it is given, a history is made in the memory of the gradients.
func Replaces(m *nn.Model, stage int, turns bool) bool { return turns && !m.Rereads(stage) }

// Replaced returns Replaces of those stages that read rows which were computed.
func Replaced(m *nn.Model, first, end int, turns bool) (all []bool) {
	infos := m.Stages()
	for s := max(1, first); s < end; s++ {
		if infos[s].Hops > 0 {
			all = append(all, Replaces(m, s, turns))
		}
	}
	return all
}

// Inputs returns how many columns of what comes from the stage before are kept of all vertices,
// and how many more of one position: rows that nothing reads again once they have been shown.
func Inputs(m *nn.Model, first int, recompute bool) (all, briefly int) {
	info := m.Stages()[first]
	if recompute || m.Rereads(first) {
		return info.In + info.CarryIn, 0
	}
	return info.CarryIn, info.In
}

// Ahead is how many positions are received ahead.
const Ahead = 2

// Offers returns how many positions are offered at once. Whoever takes one has all that come
// before those that it receives ahead, and one more makes up for uneven times.
func Offers(positions int) int {
	if positions == 1 {
		return 1
	}
	return min(Ahead+2, max(Ahead+1, positions))
}

// Between returns how many positions of what goes between two stages are in memory.
func Between(positions int) int { return Offers(positions) + Ahead }
