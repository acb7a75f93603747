package evaluate

import (
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
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

	ids   []uint32      // of the halo: those of each node together, ascending
	from  []int         // where each node's begin, then how many there are
	rowOf dataset.Index // of ids
	roots []float32     // 1/sqrt(degree) of ids, if the model's blocks need it, once all have met
	// wanted are the rows here that each node needs, once all have met.
	wanted [][]uint32
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
	out    [][]byte     // of each stage: the wanted rows, node after node
	mapped []*table     // the files of out, where memory is too small
	files  []*file      // others that are offered
	in     []byte       // rows that came
	rows   tensor.Arena // of some that are given
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

// reach sets ids, from and rowOf: the sources of all edges, but for those that are here.
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
	l := &h.nodes.Layout
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
	h.rowOf = dataset.NewIndex(ids, rows, t.Vertices())
}

// total counts the vertices here, and those of the halo.
func (h *halo) total() int { return h.own.rows + len(h.ids) }

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

// expects returns how many rows here others are taken to need: as many as this node needs of
// them. Plans are made before it is known, and do not change then.
func (h *halo) expects() int { return len(h.ids) }
