package train

import (
	"fmt"
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// needs is the memory that a run takes, in bytes.
type needs struct {
	weights   uint64 // with gradients, moments and copies
	graph     uint64 // what samplers and features keep of each vertex
	rows      uint64 // of dense features, of the largest batch seen
	slot      uint64 // of all of it
	slots     uint64
	pass      uint64 // rows of the largest batch seen
	beside    uint64 // what the device keeps beside them
	front     uint64 // what a step takes of the first layer of all nodes
	least     uint64 // the least that inference does with
	inference uint64 // what it may take
	takes     uint64 // and what it takes of that
	holds     holdings
	ferry     uint64 // what a device takes of that, and of rows that are brought ahead
}

// see takes a step's groups into account. They are computed one after the other, and
// their inputs are there together.
func (n *needs) see(t *trainer, s *slot) {
	slot, rows := uint64(8*len(s.roots)), uint64(0)
	if t.shared != nil {
		slot += t.farBytes(s)
	}
	if t.front != nil {
		rows = uint64(s.rows.Bytes())
		slot += rows + s.front.Bytes() + s.othersBytes()
		n.front = max(n.front, t.front.Forecast(s.front))
	}
	for i := range s.groups {
		if len(s.groups[i].Roots) > 0 {
			own, dense := n.group(t, s, &s.groups[i])
			slot += own
			rows += dense
		}
	}
	n.holds.see(s)
	n.slot, n.rows = max(n.slot, slot), max(n.rows, rows)
}

// group returns what a group takes of its slot, and how much of that is dense rows.
func (n *needs) group(t *trainer, s *slot, g *group) (slot, rows uint64) {
	sources := uint64(len(g.outermost()))
	switch {
	case t.front != nil: // its batch has them
	case t.data.features.Sparse():
		slot = 8*sources + 20*uint64(t.entries(s, g))
	default:
		const ends = 64 // of matrices, which begin at whole lines
		rows = ends + 4*sources*uint64(t.data.about.Features)
		slot = rows
	}
	var blocks []nn.Size
	for i := range g.batch.Blocks {
		b := &g.batch.Blocks[i]
		blocks = append(blocks, nn.Size{Targets: b.Rows, Sources: b.Cols, Entries: b.Entries()})
		slot += blockBytes(b)
	}
	in := nn.InputSize{Rows: int(sources), Sparse: t.data.features.Sparse()}
	if in.Sparse && t.front == nil {
		in.Entries = t.entries(s, g)
	}
	for _, l := range t.learners { // whose passes take turns
		var arena, beside int
		if t.front != nil {
			arena, beside = t.front.forecast(l, s, g)
		} else {
			arena, beside = l.model.Forecast(in, blocks)
		}
		n.pass = max(n.pass, uint64(arena+4*len(g.Roots)*(t.data.about.Classes+1)+4096))
		n.beside = max(n.beside, uint64(beside))
	}
	return slot, rows
}

// farBytes is what rows from other nodes take, with where all rows are.
func (t *trainer) farBytes(s *slot) uint64 {
	r := &s.far
	bytes := r.Far.Bytes()
	if s.looked && t.isolated != nil {
		for _, set := range s.sets {
			bytes += 4 * uint64(len(set))
		}
		return bytes
	}
	if s.looked {
		bytes = uint64(float64(r.Remote) * (t.shared.source.RowBytes() + 8))
	}
	for _, places := range r.Places {
		bytes += 4 * uint64(len(places))
	}
	return bytes
}

// entries are those of a group's sparse rows: as many as the graph's have on average,
// if the rows are not there.
func (t *trainer) entries(s *slot, g *group) int {
	if s.looked {
		return int(t.data.entries * float64(len(g.outermost())))
	}
	return g.sparse.Entries()
}

// settle counts the rest, once all batches are seen.
func (n *needs) settle(t *trainer) {
	vertices := uint64(t.data.topology.Vertices())
	n.slots = n.slot * uint64(len(t.batches.slots))
	if !t.batches.same {
		for _, some := range []*uint64{&n.slots, &n.pass, &n.beside, &n.rows, &n.front} {
			*some += uint64(float64(*some) * margin)
		}
	}
	n.weights = t.weightBytes()
	for _, l := range t.learners {
		n.weights += l.sumBytes()
	}
	n.graph = vertices*uint64(8*(len(t.batches.hands)+1)+4) + t.data.features.Bytes()
	if t.shared != nil {
		n.graph += t.shared.replica.Bytes + t.shared.cached
	}
	if t.front != nil {
		n.graph += t.front.columns.Bytes()
	}
	if t.isolated != nil {
		n.graph += t.isolated.forecast()
	}
	for _, l := range t.learners {
		n.graph += l.piped.bytes()
	}
	if t.recipe.Metric == ROCAUC {
		n.graph += vertices * uint64(4*(t.data.about.Classes+2)) // logits, to be ranked
	}
	n.inference = max(leastInference, n.pass)
	i := sizesOf(t.data)
	for _, l := range t.learners {
		i.add(l.model, tensor.Matrix{})
	}
	i.share(t.shared)
	n.least = i.largest(i.least)
	if memory := t.options.Memory; memory > 0 {
		n.inference = memory - min(memory, n.others()+n.pass)
	}
	n.choose(t)
	n.room(t)
	i.memory = n.inference
	n.takes = max(n.least, i.largest(i.takes))
}

// others is all but a pass and inference.
func (n *needs) others() uint64 { return atHome + n.weights + n.graph + n.slots + n.beside + n.front }

// sum is all. Inference keeps some of its memory while a pass is under way, the
// other part they take in turns.
func (n *needs) sum() uint64 { return n.others() + n.pass + n.takes }

// weightBytes is what the models' weights take while they are trained: with gradients,
// moments, the best ones, a copy to read and one that a checkpoint is written from.
func (t *trainer) weightBytes() (bytes uint64) {
	for _, l := range t.learners {
		bytes += 4 * uint64((7+l.olderRows())*l.model.Size())
	}
	return bytes
}

// sumBytes is what adding up gradients takes: a row, those that others bring and, by
// grains, those of a path through the tree. Models that travel are in hand twice at each
// stop.
func (t *learner) sumBytes() uint64 {
	if t.sums == nil {
		return 0
	}
	rows := uint64(3)
	if t.recipe.Sharing.Deterministic {
		rows += 3 * uint64(bits.Len(uint(len(t.data.shards))))
	}
	if t.shared != nil {
		rows += 2 * uint64(t.shared.dealer.Tuning().Slots)
	}
	rows = t.local.rows(rows)
	return 4 * rows * uint64(t.model.Size())
}

// gib writes bytes as people read them.
func gib(bytes uint64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// A stageCost is what a stage takes of an arena, in bytes: some for each of its
// sources, targets and edges.
type stageCost struct{ source, target, edge float64 }

// costOf asks the model. Entries is how many entries a row of sparse features has.
func costOf(m *nn.Model, stage int, sparse bool, entries float64) stageCost {
	const n = 1 << 10
	at := func(sources, targets, edges int) float64 {
		in := nn.InputSize{Rows: sources, Sparse: sparse, Entries: int(float64(sources) * entries)}
		return float64(m.ForecastStage(stage, in, nn.Size{Targets: targets, Sources: sources, Entries: edges}))
	}
	if m.Stages()[stage].Hops == 0 {
		return stageCost{source: (at(2*n, 2*n, 0) - at(n, n, 0)) / n}
	}
	base := at(2*n, n, n)
	return stageCost{source: (at(3*n, n, n) - base) / n, target: (at(2*n, 2*n, n) - base) / n, edge: (at(2*n, n, 2*n) - base) / n}
}

func (c stageCost) bytes(sources, targets, edges uint64) uint64 {
	return uint64(c.source*float64(sources) + c.target*float64(targets) + c.edge*float64(edges))
}
