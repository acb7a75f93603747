package outlook

import (
	"math"
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/footprint"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/timing"
)

// memory returns that of the node which needs most: a worker's, as package pipe forecasts
// it, with each shard as one part, or what it takes to time layers before.
func (p *plan) memory() (most uint64) {
	for node := range p.Layout.Nodes {
		stage, ways := p.seats.Of(node)
		if ways != nil {
			most = max(most, uint64(p.worker(stage, ways)+p.mark()))
		}
		most = max(most, p.timed[node])
	}
	return most
}

// timedOn returns what each node takes to time the layers on its shards, where nodes choose.
func (p *plan) timedOn() (all []uint64) {
	all = make([]uint64, p.Layout.Nodes)
	if p.settings.Graph || p.settings.Deterministic || len(all) == 1 {
		return all
	}
	room := uint64(math.MaxUint64)
	if p.Memory > 0 {
		room = pipe.RoomToTime(p.Memory)
	}
	own := make([][]int, len(all))
	for shard, node := range p.Layout.Owners {
		own[node] = append(own[node], shard)
	}
	c := &census.Census{Firsts: p.Layout.Firsts, Sources: p.sources}
	for shard := range p.sources {
		c.Entries = append(c.Entries, p.size(shard).Entries)
	}
	entries := 0.0
	if p.Graph.Sparse {
		entries = p.Graph.Entries
	}
	for node, shards := range own {
		_, all[node] = timing.Choose(shards, c, p.Model, entries, room)
	}
	return all
}

// multiplies reports whether a stage that begins there multiplies the features of all its
// vertices before chunks go through it.
func (p *plan) multiplies(first int) bool {
	return first == 0 && p.shape.Positions() > 1 && p.Model.IsSplit()
}

// worker returns the memory of a worker of some ways.
func (p *plan) worker(stage int, ways []int) int {
	first, end := p.cuts[stage], p.cuts[stage+1]
	m, histories := footprint.Rows{Number: number}, p.shape.Positions() > 1
	m.Fleeting = !histories && !p.again && p.settings.Halo != pipe.Skip
	m.Replaced = footprint.Replaced(p.Model, first, end, histories && !p.again)
	if p.multiplies(first) {
		m.Current = 1
	}
	widest := 0
	for s := first; s < end; s++ {
		if p.sees(s) {
			m.Widths = append(m.Widths, p.infos[s].In)
			widest = max(widest, p.infos[s].In)
		}
	}
	in, out := 0, 0
	if first > 0 {
		in = p.infos[first].In + p.infos[first].CarryIn
		m.Input, m.Brief = footprint.Inputs(p.Model, first, p.again)
	}
	if end < len(p.infos) {
		out = p.infos[end].In + p.infos[end].CarryIn
	}
	mirrors := 0
	for _, way := range ways {
		a, b, _, _ := p.shape.Of(way)
		m.Own += int(b - a)
		mirrors += p.mirrored[way]
	}
	m.Rows, m.Most = m.Own+mirrors, m.Own/p.shape.Positions()
	n := m.Kept()
	if histories {
		n += p.Model.Size() * number
	}
	n = footprint.Slabs(n)
	n += p.shards(first, end, ways)
	n += 4 * (2*mirrors + p.mirroredOf(ways))
	// Rows between stages: what is offered at once, and what is received ahead.
	n += (in + out) * m.Own * number * footprint.Between(p.shape.Positions()) / p.shape.Positions()
	rooms := 1
	if histories || p.settings.Halo == pipe.Previous {
		rooms = 2
	}
	offered := (&pipe.Halo{Policy: p.settings.Halo}).Offered(m.Widths, p.shape.Positions())
	sent := p.mirroredOf(ways)
	if m.Fleeting && p.settings.Halo == pipe.Exact { // gradients go from where they are added up, and arrive where rows were offered
		n += 4*(mirrors+sent) + sent*offered*number
	} else {
		n += (mirrors+sent)*(rooms*offered*number+4) + max(mirrors, sent)*widest*number // and what arrives
	}
	return n + p.leaves(stage, ways)
}

// mirroredOf counts the rows of some ways that others mirror.
func (p *plan) mirroredOf(ways []int) (n int) {
	for _, way := range ways {
		_, _, first, end := p.shape.Of(way)
		for other := range p.shape.Ways() {
			if other != way {
				for shard := first; shard < end; shard++ {
					n += int(p.mirrors[other][shard])
				}
			}
		}
	}
	return n
}

// shards returns the memory of blocks, passes and features of the shards of some ways.
func (p *plan) shards(first, end int, ways []int) (n int) {
	most, places, widestPass, read, each, shared, product, goes := 0, 0, 0, 0, 0, 0, 0, 0
	for _, way := range ways {
		for position := range p.shape.Positions() {
			a, b := p.shape.Shards(way, position)
			most = max(most, b-a)
			going := 0
			for shard := a; shard < b; shard++ {
				z := p.size(shard)
				if z.Targets == 0 {
					continue
				}
				for _, part := range p.grains(first, end, shard) {
					n += 3 * 4 * part.Targets // edges are in files
					last := &p.infos[part.end-1]
					back := part.Targets * last.Out * number
					going += back + part.Targets*max(last.CarryIn, last.CarryOut)*number
					in := nn.InputSize{Sparse: p.Graph.Sparse}
					rows := part.Targets
					if p.infos[0].Hops > 0 {
						rows = part.Sources
					}
					in.Entries = int(float64(rows) * p.Graph.Entries)
					pass, scratch := p.Model.ForecastPart(part.first, part.end, in, part.Size)
					pass, shared = pass-back, max(shared, scratch)
					if p.again {
						widestPass = max(widestPass, pass)
					} else {
						n += pass
					}
					places++
					if part.first == 0 {
						read = max(read, rows)
					}
				}
				if p.multiplies(first) { // all of it at once
					in := nn.InputSize{Sparse: p.Graph.Sparse, Entries: int(float64(z.Targets) * p.Graph.Entries)}
					pass, _ := p.Model.ForecastPart(0, 1, in, z)
					product, read = max(product, footprint.Slabs(pass)), max(read, z.Targets)
				}
				each = max(each, len(p.grains(first, end, shard)))
			}
			goes = max(goes, going)
		}
	}
	if p.again {
		places = min(places, each*most*len(ways))
		n += places * widestPass
	}
	if first == 0 {
		if p.multiplies(first) && !p.Graph.Sparse {
			places = 1
		}
		n += product + places*p.inputs(read)
		far := 0
		node := p.seats.Node(0, ways[0])
		for _, asked := range p.reads(node) {
			far += asked
		}
		n += int(float64(far) * (p.Row + 8))
	}
	return n + footprint.Slabs(shared) + footprint.Slabs(len(ways)*goes) + footprint.Slabs(most*(p.Model.Size()*number+footprint.Ends))
}

// A part is what one pass computes of a shard.
type part struct {
	nn.Size
	first, end int // of the model's stages
}

// grains returns the parts of a shard: where ways share a stage, vertices that read rows of other
// ways wait for these, and the others do not. A first stage that goes along edges has all
// rows, and does not wait.
func (p *plan) grains(first, end, shard int) []part {
	if p.multiplies(first) {
		first = 1
	}
	z := p.size(shard)
	late := p.late(shard)
	if late == 0 || late == z.Targets {
		return []part{{z, first, end}}
	}
	share := func(targets int) nn.Size {
		of := float64(targets) / float64(z.Targets)
		return nn.Size{Targets: targets, Sources: min(z.Sources, targets+int(of*float64(z.Sources-targets))), Entries: int(of * float64(z.Entries))}
	}
	var all []part
	if first == 0 && p.infos[0].Hops > 0 {
		all, first = append(all, part{z, 0, 1}), 1
	}
	return append(all, part{share(z.Targets - late), first, end}, part{share(late), first, end})
}

// late counts the vertices of a shard that read rows of other ways.
func (p *plan) late(shard int) (n int) {
	if p.shape.Ways() == 1 {
		return 0
	}
	first, end, _, _ := p.shape.Of(p.shape.WayOf(shard))
	if p.Graph.MadeUp() {
		outside := 1 - float64(end-first)/float64(p.Layout.Firsts[len(p.Layout.Firsts)-1])
		return int(float64(p.vertices(shard)) * -math.Expm1(-p.Graph.Degree()*(1-forecast.Inside)*outside))
	}
	if of, is := p.lates[shard]; is {
		return of
	}
	for v := p.Layout.Firsts[shard]; v < p.Layout.Firsts[shard+1]; v++ {
		sources, _ := p.Graph.Topology.Row(int(v))
		for _, u := range sources {
			if uint32(u) < first || uint32(u) >= end {
				n++
				break
			}
		}
	}
	p.lates[shard] = n
	return n
}

// inputs returns the memory of the features of so many vertices.
func (p *plan) inputs(rows int) int {
	if p.Graph.Sparse {
		return int(float64(rows) * (8 + 20*p.Graph.Entries))
	}
	return rows * p.Graph.Columns * number
}

// size returns the size of a shard's block.
func (p *plan) size(shard int) nn.Size {
	z := nn.Size{Targets: p.vertices(shard), Sources: p.sources[shard], Entries: int(p.Edges[shard])}
	if p.Model.Form().SelfLoops {
		z.Entries += z.Targets
	}
	return z
}

// leaves returns the memory of the gradients of shards, and of their sums.
func (p *plan) leaves(stage int, ways []int) int {
	columns, shards := p.columnsOf(stage), 0
	for _, way := range ways {
		_, _, first, end := p.shape.Of(way)
		shards += end - first
	}
	all, mine := 0, 0
	for node, spans := range exchange.Spans(p.holders(stage), p.Layout.Nodes) {
		all += len(spans)
		if node == p.seats.Node(stage, ways[0]) {
			mine = len(spans)
		}
	}
	members := len(p.seats.Members(stage))
	part := (columns + members - 1) / members
	return number * (shards*columns + (3*mine+bits.Len(uint(shards)))*columns + 2*part + 2*all*part + columns + 4*part)
}

// mark returns the memory of the last state that a node had whole, where stages have weights of
// their own.
func (p *plan) mark() int {
	if !p.isParted() {
		return 0
	}
	return number * (2 + len(p.Recipe.Optimizer.Moments())) * p.Model.Size()
}

// isParted reports whether some node trains only some of the weights.
func (p *plan) isParted() bool {
	return p.seats.Stages > 1 || len(p.seats.Members(0)) < p.Layout.Nodes
}
