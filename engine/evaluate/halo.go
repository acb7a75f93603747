package evaluate

import (
	"context"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/evaluate/overflow"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A halo is the vertices of other nodes from which edges reach those of this node: their
// rows are needed before each layer. It is found once a run, and then each node also learns
// which of its rows the others need.
//
// Both sides know who needs which rows, so that an owner offers to each node just what that
// node needs, and each node asks each owner once a layer. A node alone has no halo: it owns
// all vertices, and nothing is exchanged.
type halo struct {
	nodes Nodes
	own   extent

	marks []uint64      // of the vertices of the halo, until they are listed
	ids   []uint32      // of the halo: those of each node together, ascending
	from  []int         // where each node's begin, then how many there are
	rowOf dataset.Index // of ids
	roots []float32     // 1/sqrt(degree) of ids, if the model's blocks need it, once all have met
	// wanted are the rows here that each node needs, once all have met.
	wanted [][]uint32
	needed int // how many these are, if plans count with that
	met    bool

	// far are the features of the halo, if they are kept, and places is where
	// features.Store finds each.
	far    gather.Rows
	places []uint32
	sets   [1][]uint32

	parcels *parcels
	given
}

// given is the memory of the rows that nodes exchange.
type given struct {
	out    [][]byte         // of each stage: the wanted rows, node after node
	mapped []*table         // the files of out, where memory is too small
	files  []*overflow.File // others that are offered
	in     []byte           // rows that came
	rows   tensor.Arena     // of some that are given
}

// newHalo finds the halo of the shards that this node owns.
func newHalo(nodes Nodes, d *dataset.Graph) *halo {
	h := &halo{nodes: nodes}
	h.own = extentOf(d.Shards, h.nodes.owns)
	h.parcels = newParcels(&h.nodes)
	if nodes.alone() {
		return h
	}
	n := len(nodes.Work.Nodes)
	h.from, h.wanted = make([]int, n+1), make([][]uint32, n)
	h.reach(d.Topology)
	return h
}

// turn prepares for the stages of a model. All nodes do so at once.
func (h *halo) turn(stages []nn.StageInfo) {
	h.parcels.name(stages)
	for len(h.out) < len(stages) {
		h.out, h.mapped = append(h.out, nil), append(h.mapped, nil)
	}
}

// reach counts the sources of all edges, but for those that are here. They are listed when
// there is known to be room for them.
func (h *halo) reach(t *sample.Topology) {
	h.marks = make([]uint64, (t.Vertices()+63)/64)
	for _, s := range h.own.spans {
		for v := s.first; v < s.first+uint32(s.rows); v++ {
			sources, _ := t.Row(int(v))
			for _, u := range sources {
				h.marks[u/64] |= 1 << (u % 64)
			}
		}
	}
	for _, s := range h.own.spans {
		for v := s.first; v < s.first+uint32(s.rows); v++ {
			h.marks[v/64] &^= 1 << (v % 64)
		}
	}
	h.marked(func(_ uint32, owner int) { h.from[owner+1]++ })
	for node := range len(h.from) - 1 {
		h.from[node+1] += h.from[node]
	}
}

// marked calls do with the vertices of the halo, which ascend, and their owners.
func (h *halo) marked(do func(v uint32, owner int)) {
	l, shard := &h.nodes.Layout, 0
	for i, w := range h.marks {
		for ; w != 0; w &= w - 1 {
			v := uint32(i*64 + bits.TrailingZeros64(w))
			for v >= l.Firsts[shard+1] {
				shard++
			}
			do(v, l.Owners[shard])
		}
	}
}

// list sets ids and rowOf, once.
func (h *halo) list() {
	if h.marks == nil {
		return
	}
	next := slices.Clone(h.from)
	ids, rows := make([]uint32, 0, h.size()), make([]int32, 0, h.size())
	h.ids = make([]uint32, h.size())
	h.marked(func(v uint32, owner int) {
		to := &next[owner]
		ids, rows = append(ids, v), append(rows, int32(*to))
		h.ids[*to] = v
		*to++
	})
	h.rowOf = dataset.NewIndex(ids, rows, 64*len(h.marks))
	h.marks = nil
}

// size returns how many vertices the halo has.
func (h *halo) size() int {
	if h.from == nil {
		return 0
	}
	return h.from[len(h.from)-1]
}

// total counts the vertices here, and those of the halo.
func (h *halo) total() int { return h.own.rows + h.size() }

// inverses sets to to 1/sqrt(degree) of vertices of the halo, as sample.Inverses.
func (h *halo) inverses(_ context.Context, vertices []uint32, to []float32) error {
	for i, v := range vertices {
		to[i] = h.roots[h.rowOf.Find(v)]
	}
	return nil
}

// of counts the vertices of the halo that a node owns.
func (h *halo) of(node int) int { return h.from[node+1] - h.from[node] }

// row returns the row of a vertex among those that a layer sees: the rows that are here,
// then the halo's. near is as extent.find takes it.
func (h *halo) row(v uint32, near *int) int {
	if row, ok := h.own.find(v, near); ok {
		return row
	}
	return h.own.rows + int(h.rowOf.Find(v))
}

// wants counts the rows here that others need.
func (h *halo) wants() (n int) {
	for _, rows := range h.wanted {
		n += len(rows)
	}
	return n
}

// expects returns how many rows here plans take others to need: as many as this node needs of
// them, unless they have said that they need many more.
func (h *halo) expects() int {
	if h.needed > 0 {
		return h.needed
	}
	return h.size()
}
