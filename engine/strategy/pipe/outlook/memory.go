package outlook

import (
	"math"
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// memory returns that of the node which needs most: a worker's, as package pipe forecasts
// it, with each shard as one part.
func (p *plan) memory() (most uint64) {
	for node := range p.Layout.Nodes {
		stage, ways := p.seats.Of(node)
		if ways != nil {
			most = max(most, uint64(p.worker(stage, ways)))
		}
	}
	return most
}

// ends bounds what a matrix takes beyond its numbers, and slab is the unit of arenas.
const (
	ends = 128
	slab = 2 << 20
)

func slabs(bytes int) int { return (bytes + slab - 1) / slab * slab }

// multiplies reports whether a stage that begins there multiplies the features of all its
// vertices before chunks go through it.
func (p *plan) multiplies(first int) bool {
	return first == 0 && p.shape.Positions() > 1 && p.Model.IsSplit()
}

// worker returns the memory of a worker of some ways.
func (p *plan) worker(stage int, ways []int) int {
	first, end := p.cuts[stage], p.cuts[stage+1]
	m := pipe.Memory{Number: number, History: p.shape.Positions() > 1}
	m.Fleeting = !m.History && !p.again && p.settings.Halo != pipe.Skip
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
	if first > 0 {
		m.Input = p.infos[first].In + p.infos[first].CarryIn
	}
	out := 0
	if end < len(p.infos) {
		out = p.infos[end].In + p.infos[end].CarryIn
	}
	mirrors := 0
	for _, way := range ways {
		a, b, _, _ := p.shape.Of(way)
		m.Own += int(b - a)
		mirrors += p.mirrored[way]
	}
	m.Rows = m.Own + mirrors
	n := m.Kept()
	if m.History {
		n += p.Model.Size() * number
		if end < len(p.infos) {
			n += m.Own * p.infos[end].In * number
		}
	}
	n = slabs(n)
	n += p.shards(first, end, ways)
	n += 4 * (2*mirrors + p.mirroredOf(ways))
	// Rows between stages: all that is sent, and what is received ahead.
	n += (m.Input + out) * m.Own * number * (p.shape.Positions() + 2) / p.shape.Positions()
	rooms := 1
	if m.History || p.settings.Halo == pipe.Previous {
		rooms = 2
	}
	offered := (&pipe.Halo{Policy: p.settings.Halo}).Offered(m.Widths, p.shape.Positions())
	sent := p.mirroredOf(ways)
	n += (mirrors+sent)*(rooms*offered*number+4) + max(mirrors, sent)*widest*number // and what arrives
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
	edge := 12
	if p.Model.Form().Weighting != sample.Ones {
		edge += 4
	}
	most, places, widestPass, read, each, shared, product := 0, 0, 0, 0, 0, 0, 0
	for _, way := range ways {
		for position := range p.shape.Positions() {
			a, b := p.shape.Shards(way, position)
			most = max(most, b-a)
			for shard := a; shard < b; shard++ {
				z := p.size(shard)
				if z.Targets == 0 {
					continue
				}
				const source, target = 8 + 3*4, 8 + 2*4
				for _, part := range p.grains(first, end, shard) {
					n += edge*part.Entries + source*part.Sources + target*part.Targets
					in := nn.InputSize{Sparse: p.Graph.Sparse}
					rows := part.Targets
					if p.infos[0].Hops > 0 {
						rows = part.Sources
					}
					in.Entries = int(float64(rows) * p.Graph.Entries)
					pass, scratch := p.Model.ForecastPart(part.first, part.end, in, part.Size)
					pass, shared = slabs(pass), max(shared, scratch)
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
					product, read = max(product, slabs(pass)), max(read, z.Targets)
				}
				each = max(each, len(p.grains(first, end, shard)))
			}
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
	return n + slabs(shared) + slabs(most*(p.Model.Size()*number+ends))
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
