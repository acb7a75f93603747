package train

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/headroom"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// sceneRoom is how many bytes scenes may take, beside what there is when the first is brought.
func (t *trainer) sceneRoom() uint64 {
	if t.options.Memory == 0 {
		return headroom.Available()
	}
	return t.options.Memory - min(t.options.Memory, atHome+t.weightBytes()+t.data.features.Bytes())
}

// scenes is how many of them there are at once: the one that is trained in, and the one
// that is brought meanwhile or takes its place.
func (n *isolated) scenes() uint64 {
	if n.turns() {
		return 2
	}
	return 1
}

// takes is the memory that a scene takes, with the rows that have yet to come.
func (n *isolated) takes(s *scene) uint64 {
	return s.bytes() + uint64(len(s.far))*n.rowBytes()
}

// fits says what is short of the memory that scenes take, before the rows come that a
// scene lacks.
func (n *isolated) fits(s *scene) error {
	takes, far := n.scenes()*n.takes(s), len(s.far)
	if n.memory == 0 || takes <= n.memory {
		return nil
	}
	halo, groups := 0, max(1, len(n.mine))
	for _, g := range n.mine {
		halo += len(s.contexts[g].Halo())
	}
	advice := "take fewer --set grappa.swept, import the dataset with more shards, or use more nodes or nodes with more memory"
	switch {
	case n.settings.Hop() > 1:
		advice = "take a smaller --set grappa.depth, or " + advice
	case halo > 0 && !n.sampled:
		advice = fmt.Sprintf("take --set grappa.loader=%s, or %s", strategy.Strict, advice)
	case halo > 0:
		left := n.memory/n.scenes() - min(n.memory/n.scenes(), s.bytes())
		rest := uint64(max(0, far-halo)) * n.rowBytes()
		if most := (left - min(left, rest)) / n.rowBytes() / uint64(groups); most > 0 {
			advice = fmt.Sprintf("take --set grappa.loader=%s --set grappa.cap=%d, so that fewer rows of the halo are kept, or %s", strategy.HaloSampled, most, advice)
		} else {
			advice = fmt.Sprintf("take --set grappa.loader=%s, or %s", strategy.Strict, advice)
		}
	}
	return &cramped{fmt.Errorf("what the groups of this node see of other nodes' shards takes %s of memory, as it is and as it will be next, and there are %s for it: %s", gib(takes), gib(n.memory), advice)}
}

// rowBytes is about what the row of a vertex takes that is brought.
func (n *isolated) rowBytes() uint64 {
	if n.data.features.Sparse() {
		return uint64(8*n.data.entries) + 12
	}
	return 4 * uint64(n.data.features.Columns()) * 9 / 8 // with the room that is left for larger ones
}

// forecast is what scenes take in all: the largest of those to come beside one like it,
// by the shards that pass through the groups, and by what the first has shown of edges
// that are seen and of the halo.
func (n *isolated) forecast() uint64 {
	first := n.load(n.now.super)
	largest := uint64(0)
	for super := range n.schedule.Slots() * min(1, len(n.mine)) {
		largest = max(largest, n.predict(n.load(super), first))
	}
	return n.scenes()*max(largest, n.takes(n.now)) + n.lacking.Bytes() + n.seen.bytes()
}

// A load is what the shards have that pass through a node's groups, of those that other
// nodes hold.
type load struct {
	vertices, edges uint64 // once, whatever groups they pass through, and if they are no group's own
	copied, within  uint64 // vertices and edges, for each group
	rows, all       uint64 // all vertices that groups have, wherever they lie, and edges into them
}

func (n *isolated) load(super int) (l load) {
	once := map[int]bool{}
	for _, g := range n.mine {
		first, end := n.schedule.Base(g)
		for shard := first; shard < end; shard++ {
			l.rows, l.all = l.rows+uint64(n.data.shards[shard].Vertices), l.all+n.edges[shard]
		}
		for _, shard := range n.schedule.Swept(g, super) {
			s := n.data.shards[shard]
			l.rows, l.all = l.rows+uint64(s.Vertices), l.all+n.edges[shard]
			if s.Indptr != nil {
				continue
			}
			l.copied, l.within = l.copied+uint64(s.Vertices), l.within+n.edges[shard]
			if _, _, _, lacking := n.lacking.Row(s.First); !once[shard] && !lacking {
				once[shard] = true
				l.vertices, l.edges = l.vertices+uint64(s.Vertices), l.edges+n.edges[shard]
			}
		}
	}
	return l
}

// elsewhere counts the vertices that other nodes hold.
func (n *isolated) elsewhere() (vertices uint64) {
	for _, s := range n.data.shards {
		if s.Indptr == nil {
			vertices += uint64(s.Vertices)
		}
	}
	return vertices
}

// Of copied edges: where those of a row are and how many, and each of them.
const row, entry = 12, 4

// bare is what a scene of a load takes without any halo, where edges of all rows are
// copied, since what is left out of a halo is left out of them.
func (n *isolated) bare(l load) uint64 {
	vertices := uint64(n.data.topology.Vertices())
	bits, groups := vertices/8+vertices/16, uint64(len(n.mine))
	brought := (row+4)*l.vertices + entry*l.edges + bits
	rows := (l.vertices+uint64(len(n.lacking.Vertices())))*(n.rowBytes()+4) + bits
	edge := uint64(entry + 4) // with how often its message counts
	for _, s := range n.data.shards {
		if s.Weights != nil {
			edge = entry + 8
			break
		}
	}
	copied := row*l.rows + edge*l.all + groups*(3*vertices/8+8*uint64(n.largest()))
	return brought + rows + copied
}

// largest is how many vertices the largest shard has.
func (n *isolated) largest() (vertices int) {
	for _, s := range n.data.shards {
		vertices = max(vertices, s.Vertices)
	}
	return vertices
}

// predict is what a scene of a load takes, where the one that is here is of another.
func (n *isolated) predict(l, first load) uint64 {
	s, vertices := n.now, uint64(n.data.topology.Vertices())
	seen := 1.0 // of the edges that are brought
	if first.edges > 0 && n.settings.Hop() == 0 {
		seen = float64(s.edges.Entries()) / float64(first.edges)
	}
	copied, far, cut := uint64(0), s.reads(), n.settings.Loader == strategy.HaloSampled
	for _, g := range n.mine {
		copied += s.contexts[g].Bytes()
		cut = cut || s.contexts[g].Share < 1
	}
	of := func(vertices, edges uint64) uint64 { return row*vertices + uint64(entry*seen*float64(edges)) }
	lacking := uint64(len(n.lacking.Vertices()))
	beyond := far - min(far, first.vertices+lacking)
	if !cut {
		// As much of what is left elsewhere, and more where more edges come from there.
		left := func(l load) float64 { return float64(max(1, n.elsewhere()-min(n.elsewhere(), l.vertices+lacking))) }
		share := float64(beyond) / left(first) * float64(l.all) / float64(max(1, first.all))
		beyond = uint64(min(1, share) * left(l))
	}
	if n.most > 0 {
		beyond = min(beyond, uint64(n.most*len(n.mine)))
	}
	bits := vertices/8 + vertices/16
	edges := of(l.vertices, l.edges) + 4*l.vertices + bits
	brought := l.vertices + lacking + beyond
	rows := brought*(n.rowBytes()+4) + bits
	base := copied - min(copied, of(first.copied, first.within))
	return edges + rows + base + of(l.copied, l.within)
}
