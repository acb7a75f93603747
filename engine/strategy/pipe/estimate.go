package pipe

import (
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// A draft is an arrangement of stages and ways whose time and memory are estimated.
type draft struct {
	facts      *Facts
	infos      []nn.StageInfo
	shape      *arrange.Shape
	mirrors    *arrange.Mirrors
	seats      *arrange.Seats
	cuts       []int
	recomputes bool // backward computes again what forward computed
}

// draft places stages of a shape on nodes, and cuts the layers so that the slowest stage
// takes as little time as possible.
func (f *Facts) draft(stages int, shape *arrange.Shape, recomputes bool) *draft {
	d := &draft{facts: f, infos: f.Model.Stages(), shape: shape, mirrors: f.Census.Mirrors(shape), recomputes: recomputes}
	d.seats = arrange.Seated(stages, shape, &f.Layout)
	units := arrange.Units(d.infos)
	costs := make([]float64, len(units)-1)
	for u := range costs {
		for s := units[u]; s < units[u+1]; s++ {
			forward, backward := d.compute(s)
			costs[u] += forward + backward + d.halo(s)
		}
	}
	d.cuts = arrange.Split(costs, d.seats.Stages)
	for i, u := range d.cuts {
		d.cuts[i] = units[u]
	}
	return d
}

// estimate returns the time of an epoch as simple arithmetic has it:
//
//	compute   the layers of the busiest stage, as timed
//	halo      its rows and gradients between ways: bytes by formula over the bandwidth
//	bubble    (stages - 1) / chunks of both: the pipeline fills and drains
//	boundary  rows and gradients between two stages
//	sum       adding up gradients
//	history   one forward pass through all stages, per period
//
// Nothing is assumed to be hidden behind anything else, so it serves to rank candidates,
// and a trial decides between the best of them.
func (d *draft) estimate() arrange.Candidate {
	c := arrange.Candidate{Stages: d.seats.Stages, Ways: d.shape.Ways(), Cuts: d.cuts, Recomputes: d.recomputes}
	c.Memory, c.Fits = d.room()
	net, number := d.facts.Network, float64(d.facts.Number)
	ways, members := float64(c.Ways), float64(len(d.seats.Members(0)))
	history := 0.0
	for stage := range c.Stages {
		compute, halo := 0.0, 0.0
		for s := d.cuts[stage]; s < d.cuts[stage+1]; s++ {
			forward, backward := d.compute(s)
			compute, halo = compute+forward+backward, halo+d.halo(s)
			history += forward + d.halo(s)/2
		}
		if compute+halo > c.Compute+c.Halo {
			c.Compute, c.Halo = compute, halo
		}
		if stage > 0 {
			info := &d.infos[d.cuts[stage]]
			rows := float64(d.facts.Census.Firsts[len(d.facts.Census.Sources)]) / ways
			c.Boundary = max(c.Boundary, net.Seconds(2*rows*float64(info.In+info.CarryIn)*number, 2*float64(c.Stages-1)))
		}
		if members > 1 {
			from, to := arrange.Columns(d.facts.Model, d.cuts[stage], d.cuts[stage+1])
			c.Sum = max(c.Sum, net.Seconds(2*(members-1)/members*float64(to-from)*number, 2))
		}
	}
	c.Bubble = float64(c.Stages-1) / float64(d.shape.Positions()) * (c.Compute + c.Halo)
	if d.facts.Layout.Nodes > 1 {
		c.Sum += net.RoundTrip // losses
	}
	if d.shape.Positions() > 1 && d.facts.Settings.Histories == Made {
		c.History = history / float64(d.facts.Settings.Period)
	}
	c.Seconds = c.Compute + c.Halo + c.Bubble + c.Boundary + c.Sum + c.History
	return c
}

// compute returns the seconds of one of the model's stages over all chunks. At each
// position all ways wait for the slowest node. Ways are seated alike in all stages of the
// pipeline.
func (d *draft) compute(s int) (forward, backward float64) {
	for p := range d.shape.Positions() {
		there, back := make([]float64, d.facts.Layout.Nodes), make([]float64, d.facts.Layout.Nodes)
		slowest := 0
		for way := range d.shape.Ways() {
			node := d.seats.Node(0, way)
			first, end := d.shape.Shards(way, p)
			for shard := first; shard < end; shard++ {
				there[node] += d.facts.Costs.Forward[s][shard]
				back[node] += d.facts.Costs.Backward[s][shard]
				if d.recomputes {
					back[node] += d.facts.Costs.Forward[s][shard]
				}
			}
			if there[node]+back[node] > there[slowest]+back[slowest] {
				slowest = node
			}
		}
		forward, backward = forward+there[slowest], backward+back[slowest]
	}
	return forward, backward
}

// halo returns the seconds that the rows and gradients take which ways send each other
// for one of the model's stages.
func (d *draft) halo(s int) float64 {
	if s == 0 || d.infos[s].Hops == 0 || len(d.seats.Members(0)) == 1 {
		return 0
	}
	rows := 0
	for way := range d.shape.Ways() {
		rows = max(rows, d.mirrors.All(way))
	}
	share, p := 1.0, &d.facts.Settings
	switch p.Halo {
	case Sampled:
		share = float64(p.Share) / 100
	case Skip:
		share = 1 / float64(p.Age+1)
	}
	return 2 * d.facts.Network.Seconds(share*float64(rows*d.infos[s].In*d.facts.Number), share*float64(d.shape.Positions()))
}

// load returns what a node of a draft has to do.
func (d *draft) load(stage int, ways []int) *load {
	f, p := d.facts, &d.facts.Settings
	l := &load{
		described: described{model: f.Model, stages: d.infos}, number: f.Number, entries: f.Entries, shape: d.shape, mirrors: d.mirrors,
		seats: d.seats, stage: stage, first: d.cuts[stage], end: d.cuts[stage+1], ways: ways,
		keeping: keeping{recompute: d.recomputes}, leaves: p.Histories != Made, policy: p.Halo, nodes: f.Layout.Nodes,
	}
	trunks := l.first == 0 && l.infos()[0].Hops > 0
	var whole []part
	for _, way := range ways {
		for _, of := range f.partsOf(d.shape)[way] {
			of.first, of.end = l.first, l.end
			if l.multiplies() {
				of.first = productsAt
			}
			if p.Gradients == kept && l.histories() {
				of.late = of.sources - of.vertices // and some that are computed beside it
			}
			if trunks && of.split {
				of.first = 1
				if of.inner {
					whole = append(whole, part{
						position: of.position, shard: of.shard, vertices: l.vertices(of.shard), sources: f.Census.Sources[of.shard],
						entries: f.Census.Entries[of.shard], end: 1,
					})
				}
			}
			l.parts = append(l.parts, of)
		}
	}
	l.parts = append(l.parts, whole...)
	if f.Held {
		if l.held = l.edges(); l.histories() {
			l.held += l.past()
		}
	}
	return l
}

// room returns the memory of the node that needs most, and reports whether all nodes
// have enough.
func (d *draft) room() (most uint64, fits bool) {
	fits = true
	for node := range d.facts.Layout.Nodes {
		needs := d.takes(node)
		most = max(most, needs)
		if memory := d.facts.Memory; node < len(memory) && memory[node] > 0 && needs > memory[node] {
			fits = false
		}
	}
	return most, fits
}

// takes returns what a node with a part needs, with features.
func (d *draft) takes(node int) uint64 {
	stage, ways := d.seats.Of(node)
	if ways == nil {
		return 0
	}
	needs := d.load(stage, ways).bytes()
	if stage == 0 {
		needs += d.inputs(ways)
	}
	return needs
}

// least returns what a node needs of an arrangement in any case: nearly what is estimated, with
// the mirrors that are there in any case.
func (f *Facts) least(c *arrange.Candidate, node int) (uint64, error) {
	d, err := f.drafted(c, c.Recomputes || f.Settings.MayRecompute())
	if err != nil {
		return 0, err
	}
	d.mirrors = f.Census.LeastMirrors(d.shape)
	stage, ways := d.seats.Of(node)
	if ways == nil {
		return 0, nil
	}
	return d.load(stage, ways).bytes() / 20 * 19, nil
}

// drafted returns the draft of an arrangement with the cuts that were chosen for it.
func (f *Facts) drafted(c *arrange.Candidate, recomputes bool) (*draft, error) {
	shape, err := f.shape(c.Ways)
	if err != nil {
		return nil, err
	}
	d := f.draft(c.Stages, shape, recomputes)
	d.cuts = c.Cuts
	return d, nil
}

// inputs returns about what features of other nodes take where the first stage reads them.
func (d *draft) inputs(ways []int) uint64 {
	rows := 0
	for _, way := range ways {
		first, end, _, _ := d.shape.Of(way)
		rows += int(end - first)
	}
	bytes := float64(d.infos[0].In * d.facts.Number)
	if d.facts.Entries > 0 {
		bytes = 20 * d.facts.Entries
	}
	return uint64(float64(rows) * bytes)
}

// Partials counts the numbers of partial sums that the nodes of each stage send each
// other beyond one sum per node. A node has several sums where its shards are not all
// those below one knot of the summation tree.
func (t *Task) Partials(nodes int) (numbers int) {
	for stage := range t.Seats.Stages {
		from, to := arrange.Columns(t.Model, t.Cuts[stage], t.Cuts[stage+1])
		spans, members := exchange.Spans(t.holders(stage), nodes), t.Seats.Members(stage)
		for member, node := range members {
			first, end := shareOf(to-from, member, len(members))
			numbers += max(0, len(spans[node])-1) * (to - from - (end - first))
		}
	}
	return numbers
}
