package pipe

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A load is some ways of one stage of a pipeline, as far as their memory depends on it:
// counts, so that it can be forecast of any node, before any has looked at edges.
type load struct {
	model      *nn.Model
	number     int // bytes of one
	entries    float64
	parts      []part
	shape      *Shape
	mirrors    *Mirrors
	seats      *Seats
	stage      int
	first, end int // of the model's stages
	ways       []int
	recompute  bool
	leaves     bool // epochs leave their rows as histories
	policy     string
	nodes      int
}

// A part is what one pass computes: a shard or, where ways share a stage, that of its
// vertices which sees rows of now of other ways, and the rest; and the first of the model's
// stages for both at once, if that goes along edges.
type part struct {
	position, shard            int
	inner, split               bool // it waits for nobody; its shard has another, too
	vertices, sources, entries int
	late                       int // rows of others whose gradients are kept for the next epoch
	first, end                 int // of the model's stages
}

const (
	// ends is what a matrix takes at most beyond its numbers, since it begins at a whole line.
	ends = 128
	// slab is of what processors' arenas are multiples.
	slab = 2 << 20
)

// slabs is what an arena takes that holds so many bytes.
func slabs(bytes int) int { return (bytes + slab - 1) / slab * slab }

// bytes is all that a worker takes once it is open and has trained, features aside.
func (l *load) bytes() uint64 {
	if len(l.ways) == 0 {
		return uint64(l.model.Size() * l.number)
	}
	n := l.kept() + l.blocks() + l.passes() + l.boundary() + l.halo() + l.sums()
	return uint64(n)
}

func (l *load) infos() []nn.StageInfo { return l.model.Stages() }

// last says whether the stage answers.
func (l *load) last() bool { return l.end == len(l.infos()) }

// histories says whether there are any.
func (l *load) histories() bool { return l.shape.Positions() > 1 }

// own counts the vertices of a way.
func (l *load) own(way int) int {
	first, end, _, _ := l.shape.Of(way)
	return int(end - first)
}

// vertices counts those of a shard.
func (l *load) vertices(shard int) int { return int(l.shape.firsts[shard+1] - l.shape.firsts[shard]) }

// shards are those of its ways that have vertices, by the position of their chunk.
func (l *load) shards() [][]int {
	all := make([][]int, l.shape.Positions())
	for _, way := range l.ways {
		for p := range all {
			first, end := l.shape.Shards(way, p)
			for shard := first; shard < end; shard++ {
				if l.vertices(shard) > 0 {
					all[p] = append(all[p], shard)
				}
			}
		}
	}
	return all
}

// widths are the columns of the rows that each layer sees which sees others'.
func (l *load) widths() (all []int) {
	for s := l.first; s < l.end; s++ {
		if info := &l.infos()[s]; s > 0 && info.Hops > 0 {
			all = append(all, info.In)
		}
	}
	return all
}

// carried counts the columns that come from the stage before, and that go to the next.
func (l *load) carried() (in, out int) {
	if l.first > 0 {
		in = l.infos()[l.first].In + l.infos()[l.first].CarryIn
	}
	if !l.last() {
		out = l.infos()[l.end].In + l.infos()[l.end].CarryIn
	}
	return in, out
}

// kept is rows that live as long as training: those of layers, weights of before, and
// gradients of shards that are computed together.
func (l *load) kept() int {
	m := Memory{Number: l.number, Widths: l.widths(), History: l.histories()}
	m.Input, _ = l.carried()
	for _, way := range l.ways {
		m.Rows += l.own(way) + len(l.mirrors.of[way])
		m.Own += l.own(way)
	}
	most := 0 // shards at one position
	for _, at := range l.shards() {
		most = max(most, len(at))
	}
	for i := range l.parts {
		m.Late += l.parts[i].late
	}
	matrices := 2 * len(l.parts)
	if m.Late > 0 {
		matrices += len(l.parts) * len(m.Widths)
	}
	n := slabs(m.Kept() + ends*(matrices+4*len(l.ways)*len(m.Widths)) + most*(l.model.Size()*l.number+ends))
	if l.histories() {
		early := l.model.Size() * l.number
		if !l.last() {
			early += m.Own * l.infos()[l.end].In * l.number
		}
		n += slabs(early)
	}
	return n
}

// blocks is the edges of all shards, there and back, with where their rows lie.
func (l *load) blocks() (n int) {
	edge := 12 // its source; its target and its place, by sources
	if l.model.Form().Weighting != sample.Ones {
		edge += 4
	}
	for i := range l.parts {
		const source, target = 8 + 3*4, 8 + 2*4
		n += edge*l.parts[i].entries + source*l.parts[i].sources + target*l.parts[i].vertices
	}
	for _, way := range l.ways {
		n += 4 * len(l.mirrors.of[way])
	}
	return n + 4*l.mirrors.Count()
}

// pass is what the pass of a part takes.
func (l *load) pass(of *part) int {
	if of.first >= of.end {
		return 0
	}
	in, rows := nn.InputSize{Sparse: l.entries > 0}, of.vertices
	if l.infos()[0].Hops > 0 {
		rows = of.sources
	}
	in.Entries = int(float64(rows) * l.entries)
	n := l.model.ForecastPart(of.first, of.end, in, nn.Size{Targets: of.vertices, Sources: of.sources, Entries: of.entries}) / 4 * l.number
	for s := of.first; s < of.end; s++ {
		if carry := max(l.infos()[s].CarryIn, l.infos()[s].CarryOut); carry > 0 {
			return n + of.vertices*carry*l.number + ends
		}
	}
	return n
}

// places is what each pass takes that is under way beside others: of each part or, where
// passes are made again, of each of those that are at one position.
func (l *load) places() (all []int) {
	at := make([]int, l.shape.Positions())
	for i := range l.parts {
		of := &l.parts[i]
		bytes := l.pass(of)
		if !l.recompute || at[of.position] == len(all) {
			all = append(all, 0)
		}
		place := len(all) - 1
		if l.recompute {
			place = at[of.position]
		}
		all[place] = max(all[place], bytes)
		at[of.position]++
	}
	return all
}

// passes is the memory of all of them.
func (l *load) passes() (n int) {
	for _, bytes := range l.places() {
		n += slabs(bytes)
	}
	return n
}

// boundary is where rows lie that come from the stage before and go to the next, and their
// gradients: what goes for all positions, what comes for as many as come ahead.
func (l *load) boundary() int {
	const ahead = 2
	in, out := l.carried()
	numbers := 0
	for _, way := range l.ways {
		own, most := l.own(way), 0
		for p := range l.shape.Positions() {
			first, end := l.shape.Vertices(way, p)
			most = max(most, int(end-first))
		}
		numbers += (in + out) * (own + ahead*most)
		if l.histories() {
			numbers += own * out // for who has yet to make a history
		}
	}
	return numbers * l.number
}

// halo is where rows lie that ways give each other, and gradients.
func (l *load) halo() (n int) {
	mine := make([]bool, l.shape.Ways())
	for _, way := range l.ways {
		mine[way] = true
	}
	all, widest := 0, 0
	for _, width := range l.widths() {
		all, widest = all+width, max(widest, width)
	}
	rooms := 1
	if l.policy == Previous || l.histories() {
		rooms = 2
	}
	largest := 0
	for p := range l.shape.Positions() {
		for from := range mine {
			for to := range mine {
				if from == to || !mine[from] && !mine[to] {
					continue
				}
				first, end := l.mirrors.from(to, from, p)
				for _, ours := range []bool{mine[from], mine[to]} {
					if ours { // it gives in one direction, and takes in the other
						n += (end - first) * ((rooms*all+widest)*l.number + 4)
					}
				}
				largest = max(largest, end-first)
			}
		}
	}
	// Rows and histories change places through as much, and gradients that were kept go.
	for i := range l.parts {
		largest = max(largest, l.parts[i].late)
	}
	if l.leaves && l.recompute && l.histories() {
		for _, way := range l.ways {
			for p := range l.shape.Positions() {
				first, end := l.shape.Vertices(way, p)
				largest = max(largest, int(end-first))
			}
		}
	}
	return n + slabs(largest*widest*l.number)
}

// sums is where gradients of shards lie, and their sums on their way.
func (l *load) sums() int {
	from, to := columnsOf(l.model, l.first, l.end)
	columns, shards := to-from, 0
	for _, at := range l.shards() {
		shards += len(at)
	}
	holders := (&Task{Shape: l.shape, Seats: l.seats}).holders(l.stage)
	all, mine := 0, 0
	for node, spans := range exchange.Spans(holders, l.nodes) {
		all += len(spans)
		if node == l.seats.Node(l.stage, l.ways[0]) {
			mine = len(spans)
		}
	}
	members := len(l.seats.Members(l.stage))
	share := (columns + members - 1) / members
	levels := bits.Len(uint(shards))
	numbers := shards*columns + (2*mine+mine+levels)*columns + 2*share + 2*all*share + columns
	if parted(l.seats, l.nodes) {
		const settled = 4 // rows: weights, two moments, and the weights of before
		numbers += settled * share
	}
	return numbers * l.number
}

// load is that of a node in a draft.
func (d *draft) load(stage int, ways []int) *load {
	l := &load{
		model: d.Model, number: d.Number, entries: d.Entries, shape: d.shape, mirrors: d.mirrors,
		seats: d.seats, stage: stage, first: d.cuts[stage], end: d.cuts[stage+1], ways: ways,
		recompute: d.recomputes, leaves: d.Settings.Pipe.HistoriesOf() != Made, policy: d.Settings.Pipe.HaloOf(), nodes: d.Layout.Nodes,
	}
	trunks := l.first == 0 && l.infos()[0].Hops > 0
	var whole []part
	for _, way := range ways {
		for _, of := range d.partsOf(d.shape)[way] {
			of.first, of.end = l.first, l.end
			if d.Settings.Pipe.KeepGradients && l.histories() {
				of.late = of.sources - of.vertices // and some that are computed beside it
			}
			if trunks && of.split {
				of.first = 1
				if of.inner {
					whole = append(whole, part{
						position: of.position, shard: of.shard, vertices: l.vertices(of.shard), sources: d.Census.Sources[of.shard],
						entries: d.Census.Entries[of.shard], end: 1,
					})
				}
			}
			l.parts = append(l.parts, of)
		}
	}
	l.parts = append(l.parts, whole...)
	return l
}

// room says what the node takes that takes most, and whether all have it.
func (d *draft) room() (most uint64, fits bool) {
	fits = true
	for node := range d.Layout.Nodes {
		stage, ways := d.seats.Of(node)
		if ways == nil {
			continue
		}
		needs := d.load(stage, ways).bytes()
		if stage == 0 {
			needs += d.inputs(ways)
		}
		most = max(most, needs)
		if node < len(d.Memory) && d.Memory[node] > 0 && needs > d.Memory[node] {
			fits = false
		}
	}
	return most, fits
}

// inputs is about what features of other nodes take where the first stage reads them.
func (d *draft) inputs(ways []int) uint64 {
	rows := 0
	for _, way := range ways {
		first, end, _, _ := d.shape.Of(way)
		rows += int(end - first)
	}
	bytes := float64(d.infos[0].In * d.Number)
	if d.Entries > 0 {
		bytes = 20 * d.Entries
	}
	return uint64(float64(rows) * bytes)
}
