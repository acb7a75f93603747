package train

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A halo is the vertices of other nodes from which edges reach those of this node:
// their rows are needed before each layer. Which they are is found out once a run, in
// which each node also learns which of its rows the others want.
//
// Who wants which rows is known to both sides, so that an owner offers to each node
// just what that node wants, and each node asks each owner once a layer.
type halo struct {
	shared *shared
	own    extent
	stages []string // their names

	ids   []uint32 // of the halo: those of each node together, ascending
	from  []int    // where each node's begin, then how many there are
	rowOf index    // of ids
	// wanted are the rows here that each node wants, once all have met.
	wanted [][]uint32
	met    bool

	// far are the features of the halo, if they are kept, and places is where
	// features.Store finds each.
	far    gather.Rows
	places []uint32
	sets   [1][]uint32

	out    [][]byte     // of each stage: the wanted rows, node after node
	mapped []*table     // what out lies in, where memory is too small
	in     []byte       // rows that came
	rows   tensor.Arena // of some that are given

	message  []byte // of scores
	rankings [len(ranked)]rankings

	takers  []*taker // for each node
	running sync.WaitGroup
	tally   strategy.Tally
	under   evaluation
}

// newHalo finds the vertices of the halo of the shards that this node owns.
func newHalo(s *shared, d *data) *halo {
	h := &halo{shared: s, own: extentOf(d.shards, s.owns)}
	nodes := len(s.work.Nodes)
	h.from, h.wanted = make([]int, nodes+1), make([][]uint32, nodes)
	h.reach(d.topology)
	for node := range nodes {
		h.takers = append(h.takers, newTaker(h, node))
	}
	return h
}

// runs says which model's stages are run next. All nodes do so at once.
func (h *halo) runs(stages []nn.StageInfo) {
	h.stages = h.stages[:0]
	for _, stage := range stages {
		h.stages = append(h.stages, stage.Name)
	}
	for len(h.out) < len(stages) {
		h.out, h.mapped = append(h.out, nil), append(h.mapped, nil)
	}
}

// reach sets ids, from and rowOf. The sources of all edges are marked, and those that
// are here are struck out.
func (h *halo) reach(t *sample.Topology) {
	marks := make([]uint64, (t.Vertices()+63)/64)
	for _, s := range h.own.spans {
		for v := s.first; v < s.first+uint32(s.rows); v++ {
			sources, _ := t.Row(int(v))
			for _, u := range sources {
				marks[u/64] |= 1 << (u % 64)
			}
		}
	}
	for _, s := range h.own.spans {
		for v := s.first; v < s.first+uint32(s.rows); v++ {
			marks[v/64] &^= 1 << (v % 64)
		}
	}
	count := 0
	for _, w := range marks {
		count += bits.OnesCount64(w)
	}
	ids, owners := make([]uint32, 0, count), make([]uint16, 0, count)
	l := &h.shared.layout
	shard := 0
	for i, w := range marks {
		for ; w != 0; w &= w - 1 {
			v := uint32(i*64 + bits.TrailingZeros64(w))
			for v >= l.Firsts[shard+1] {
				shard++
			}
			owner := l.Owners[shard]
			ids, owners = append(ids, v), append(owners, uint16(owner))
			h.from[owner+1]++
		}
	}
	for node := range len(h.from) - 1 {
		h.from[node+1] += h.from[node]
	}
	next := slices.Clone(h.from)
	h.ids = make([]uint32, count)
	rows := make([]int32, count)
	for i, v := range ids {
		to := &next[owners[i]]
		h.ids[*to], rows[i] = v, int32(*to)
		*to++
	}
	h.rowOf = newIndex(ids, rows, t.Vertices())
}

// of counts those of the halo that a node owns.
func (h *halo) of(node int) int { return h.from[node+1] - h.from[node] }

// row is that of a vertex among the rows that a layer sees: those that are here, then
// the halo's. near is as extent.find takes it.
func (h *halo) row(v uint32, near *int) int {
	if row, ok := h.own.find(v, near); ok {
		return row
	}
	return h.own.rows + int(h.rowOf.find(v))
}

// wants counts the rows here that others want: about as many, until that is known, as
// are wanted of them.
func (h *halo) wants() (n int) {
	if !h.met {
		return len(h.ids)
	}
	for _, rows := range h.wanted {
		n += len(rows)
	}
	return n
}

// An index finds the row of each of some ascending vertices.
type index struct {
	ids  []uint32
	rows []int32
	// near[v>>shift] is the place of the first with these high bits, or of what follows.
	near  []int32
	shift uint
}

func newIndex(ids []uint32, rows []int32, vertices int) index {
	x := index{ids: ids, rows: rows}
	for vertices>>x.shift > len(ids) {
		x.shift++
	}
	x.near = make([]int32, vertices>>x.shift+2)
	at := 0
	for i := range x.near {
		for at < len(ids) && int(ids[at]>>x.shift) < i {
			at++
		}
		x.near[i] = int32(at)
	}
	return x
}

// find is the row of a vertex, which is one of them.
func (x *index) find(v uint32) int32 {
	from, to := x.near[v>>x.shift], x.near[v>>x.shift+1]
	at, _ := slices.BinarySearch(x.ids[from:to], v)
	return x.rows[int(from)+at]
}
