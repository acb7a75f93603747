package pipe

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/footprint"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/plots"
)

// A load is a node's part of a pipeline, as far as its memory depends on it. It consists of
// counts, so that any node's memory can be forecast before it has sampled anything.
type load struct {
	described
	number     int // bytes of one
	entries    float64
	parts      []part
	shape      *arrange.Shape
	mirrors    *arrange.Mirrors
	seats      *arrange.Seats
	stage      int
	first, end int // of the model's stages
	ways       []int
	keeping
	leaves bool // epochs leave their rows as histories
	policy string
	nodes  int
}

// keeping is what a node keeps in memory.
type keeping struct {
	recompute bool
	held      int // bytes of blocks and histories that do not lie in files
}

// described is a model, and its stages once somebody has asked for them.
type described struct {
	model  *nn.Model
	stages []nn.StageInfo
}

// A part is what one pass computes: a shard or, where ways share a stage, either its
// vertices that read current rows of other ways or its remaining ones. If the model's first
// stage goes along edges, both have one pass for that stage.
type part struct {
	position, shard            int
	inner, split               bool // waits for no other way; the shard has another part
	vertices, sources, entries int
	late                       int // rows of others whose gradients are kept for the next epoch
	first, end                 int // of the model's stages
}

// bytes returns all memory of a worker that is open and has trained, except for features.
func (l *load) bytes() uint64 {
	if len(l.ways) == 0 {
		return uint64(l.model.Size() * l.number)
	}
	n := l.kept() + l.blocks() + l.passes() + footprint.Slabs(l.sent()) + l.spare() + l.sums()
	return uint64(n)
}

func (d *described) infos() []nn.StageInfo {
	if d.stages == nil {
		d.stages = d.model.Stages()
	}
	return d.stages
}

// last reports whether the stage computes the answers.
func (l *load) last() bool { return l.end == len(l.infos()) }

// histories reports whether there are any.
func (l *load) histories() bool { return l.shape.Positions() > 1 }

// own returns the number of vertices of a way.
func (l *load) own(way int) int {
	first, end, _, _ := l.shape.Of(way)
	return int(end - first)
}

// vertices returns the number of vertices of a shard.
func (l *load) vertices(shard int) int { return int(l.shape.Firsts[shard+1] - l.shape.Firsts[shard]) }

// shards returns the node's non-empty shards, by the position of their chunk.
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

// multiplies is that of the worker.
func (l *load) multiplies() bool { return l.first == 0 && l.histories() && l.model.IsSplit() }

// widths returns the columns of the rows that each layer reads which reads other vertices.
func (l *load) widths() (all []int) {
	for s := l.first; s < l.end; s++ {
		if info := &l.infos()[s]; s > 0 && info.Hops > 0 {
			all = append(all, info.In)
		}
	}
	return all
}

// carried returns the columns that come from the stage before, and that go to the next.
func (l *load) carried() (in, out int) {
	if l.first > 0 {
		in = l.infos()[l.first].In + l.infos()[l.first].CarryIn
	}
	if !l.last() {
		out = l.infos()[l.end].In + l.infos()[l.end].CarryIn
	}
	return in, out
}

// kept returns the memory that lives as long as training: rows of layers, earlier weights,
// and gradients of shards that are computed together.
func (l *load) kept() int {
	m := footprint.Rows{Number: l.number, Widths: l.widths(), Replaced: footprint.Replaced(l.model, l.first, l.end, l.histories() && !l.recompute), Fleeting: !l.histories() && !l.recompute && l.policy != Skip}
	if l.first > 0 {
		m.Input, m.Brief = footprint.Inputs(l.model, l.first, l.recompute)
	}
	if l.multiplies() {
		m.Current = 1
	}
	for _, way := range l.ways {
		m.Rows += l.own(way) + l.mirrors.All(way)
		m.Own += l.own(way)
	}
	m.Most = l.most()
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
	n := footprint.Slabs(m.Kept() + footprint.Ends*(matrices+4*len(l.ways)*len(m.Widths)) + most*(l.model.Size()*l.number+footprint.Ends))
	if l.histories() {
		n += footprint.Slabs(l.model.Size() * l.number)
	}
	return n + footprint.Slabs(l.going())
}

// going returns the memory of the gradients with which a position goes back, at most.
func (l *load) going() (most int) {
	at := make([]int, l.shape.Positions())
	for i := range l.parts {
		of := &l.parts[i]
		last := &l.infos()[of.end-1]
		at[of.position] += of.vertices*(last.Out+max(last.CarryIn, last.CarryOut))*l.number + footprint.Ends
		most = max(most, at[of.position])
	}
	return most
}

// most returns the most vertices at a position.
func (l *load) most() (most int) {
	for p := range l.shape.Positions() {
		n := 0
		for _, way := range l.ways {
			first, end := l.shape.Vertices(way, p)
			n += int(end - first)
		}
		most = max(most, n)
	}
	return most
}

// blocks returns the memory of vertices and mirrors, and of those blocks that are in memory.
func (l *load) blocks() (n int) {
	for i := range l.parts {
		n += 3 * 4 * l.parts[i].vertices
	}
	for _, way := range l.ways {
		n += 4 * l.mirrors.All(way)
	}
	return n + 4*l.mirrors.Known(l.ways) + l.held
}

// edges returns the bytes of the blocks of all shards, in both directions, with where their
// rows are.
func (l *load) edges() (n int) {
	edge := 12 // its source; its target and its place, by sources
	if l.model.Form().Weighting != sample.Ones {
		edge += 4
	}
	const source, target = 8 + 2*4, 8
	for i := range l.parts {
		n += edge*l.parts[i].entries + source*l.parts[i].sources + target*l.parts[i].vertices
	}
	return n
}

// past returns the bytes of histories.
func (l *load) past() (n int) {
	widths := l.widths()
	if l.multiplies() {
		widths = widths[1:]
	}
	for _, way := range l.ways {
		for _, width := range widths {
			n += (l.own(way) + l.mirrors.All(way)) * width * l.number
		}
	}
	return n
}

// pass returns the memory of the pass of a part, and what it needs of what passes share.
func (l *load) pass(of *part) (n, scratch int) {
	if of.first >= of.end {
		return 0, 0
	}
	in, rows := nn.InputSize{Sparse: l.entries > 0}, of.vertices
	if l.infos()[0].Hops > 0 {
		rows = of.sources
	}
	in.Entries = int(float64(rows) * l.entries)
	n, scratch = l.model.ForecastPart(of.first, of.end, in, nn.Size{Targets: of.vertices, Sources: of.sources, Entries: of.entries})
	n -= 4 * of.vertices * l.infos()[of.end-1].Out // see going
	return n/4*l.number + footprint.Ends, scratch / 4 * l.number
}

// places returns the memory of each pass that lives beside others: one for each part or, if
// passes are computed again, for each part at one position.
func (l *load) places() (all []int) {
	at := make([]int, l.shape.Positions())
	for i := range l.parts {
		of := &l.parts[i]
		bytes, _ := l.pass(of)
		if !l.recompute || at[of.position] == len(all) {
			all = append(all, 0)
		}
		place := len(all) - 1
		if l.recompute {
			place = at[of.position]
		}
		all[place] = max(all[place], bytes)
		at[of.position]++
		if l.multiplies() { // by the first pass
			product := *of
			product.first, product.end = 0, productsAt
			bytes, _ = l.pass(&product)
			all[0] = max(all[0], bytes)
		}
	}
	return all
}

// passes returns the memory of all passes.
func (l *load) passes() (n int) {
	for _, bytes := range l.places() {
		n += plots.Round(bytes)
	}
	return footprint.Slabs(n)
}

// boundary returns the memory of rows and gradients between stages: the positions that are
// offered at once, and as many as are received ahead.
func (l *load) boundary() int {
	in, out := l.carried()
	numbers := 0
	for _, way := range l.ways {
		most := 0
		for p := range l.shape.Positions() {
			first, end := l.shape.Vertices(way, p)
			most = max(most, int(end-first))
		}
		numbers += (in + out) * footprint.Between(l.shape.Positions()) * most
	}
	return numbers*l.number + 2*footprint.Between(l.shape.Positions())*len(l.ways)*footprint.Ends
}

// sent returns the memory of what comes from other nodes and goes to them.
func (l *load) sent() int { return l.boundary() + l.halo() }

// direct is that of the worker's halo.
func (l *load) direct() bool { return !l.histories() && !l.recompute && l.policy == Exact }

// halo returns the memory of rows and gradients between ways.
func (l *load) halo() (n int) {
	mine := make([]bool, l.shape.Ways())
	for _, way := range l.ways {
		mine[way] = true
	}
	widest := 0
	for _, width := range l.widths() {
		widest = max(widest, width)
	}
	all := (&Halo{Policy: l.policy}).Offered(l.widths(), l.shape.Positions())
	rooms := 1
	if l.policy == Previous || l.histories() {
		rooms = 2
	}
	most, arrive := 0, [2]int{} // rows that arrive, by direction
	for p := range l.shape.Positions() {
		if !l.histories() {
			arrive = [2]int{}
		}
		for from := range mine {
			for to := range mine {
				if from == to || !mine[from] && !mine[to] {
					continue
				}
				rows := l.mirrors.Number(to, from, p)
				for direction, ours := range []bool{mine[from], mine[to]} {
					if ours { // it sends in this direction, and receives in the other
						n += 4 * rows
						if rows > 0 {
							n += 2 * mostPieces * len(l.widths()) * footprint.Ends
						}
						if direction == forwards || !l.direct() {
							n += rows * rooms * all * l.number
						}
						if !mine[from] || !mine[to] {
							arrive[direction] += rows
							most = max(most, arrive[direction])
						}
					}
				}
			}
		}
	}
	landings := 1
	switch {
	case l.direct():
		landings = 0
	case l.policy == Previous:
		landings = previousAhead
	}
	return n + landings*(most*widest*l.number+footprint.Ends)
}

// spare returns the memory that is for one thing after the other: the sources that a part
// sees, and what comes and goes.
func (l *load) spare() (n int) {
	largest, widest := 0, 0
	for _, width := range l.widths() {
		widest = max(widest, width)
	}
	for p := range l.shape.Positions() {
		for _, mine := range l.ways {
			for other := range l.shape.Ways() {
				if other != mine {
					largest = max(largest, l.mirrors.Number(mine, other, p), l.mirrors.Number(other, mine, p))
				}
			}
		}
	}
	// Rows and histories are exchanged through as much, and gradients that were kept are
	// moved.
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
	n = largest*widest*l.number + footprint.Ends
	for i := range l.parts {
		_, scratch := l.pass(&l.parts[i])
		n = max(n, scratch)
	}
	return footprint.Slabs(n)
}

// sums returns the memory of the gradients of shards, and of their sums.
func (l *load) sums() int {
	from, to := arrange.Columns(l.model, l.first, l.end)
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

// keeps returns the bytes of the arena that lives as long as the worker.
func keeps(w *Worker) int {
	m := footprint.Rows{Number: w.Device.Type().Bytes()}
	for s := w.first; s < w.end; s++ {
		if w.sees(s) {
			m.Widths = append(m.Widths, w.infos[s].In)
		}
	}
	for _, way := range w.ways {
		m.Rows += way.all()
	}
	for _, g := range w.grains {
		if w.keepsLate() {
			m.Late += len(g.rows) - g.active
		}
		m.Own += len(g.vertices)
	}
	m.Fleeting, m.Replaced, m.Most = w.fleeting(), footprint.Replaced(w.Model, w.first, w.end, w.refreshes() && !w.Recompute), loadOf(w).most()
	if w.multiplies() {
		m.Current = 1
	}
	if w.first > 0 {
		m.Input, m.Brief = footprint.Inputs(w.Model, w.first, w.Recompute)
	}
	of := 2 // matrices of a grain
	if w.keepsLate() {
		of += len(m.Widths)
	}
	const ends = 64 // each matrix begins at a whole line
	return m.Kept() + ends*(of*len(w.grains)+4*len(w.ways)*len(m.Widths)) +
		w.slots()*(w.Model.Size()*m.Number+ends)
}

// loadOf returns what a worker has to do.
func loadOf(w *Worker) *load {
	l := &load{
		described: described{model: w.Model}, number: w.Device.Type().Bytes(), entries: w.entries, shape: w.Shape, mirrors: w.mirrors,
		seats: w.Seats, stage: w.stage, first: w.first, end: w.end,
		keeping: keeping{w.Recompute, int(w.blocks.Held() + w.past.Held())},
		leaves:  w.Histories != Made, policy: w.Halo.Policy, nodes: w.net.Nodes(),
	}
	for _, way := range w.ways {
		l.ways = append(l.ways, way.number)
		for p := range way.at {
			for _, g := range way.at[p] {
				of := counts(w, g, p)
				if g.trunk != nil {
					of.first = 1
				}
				if w.keepsLate() {
					of.late = len(g.rows) - g.active
				}
				l.parts = append(l.parts, of)
			}
		}
	}
	for _, way := range w.ways { // as they are numbered
		for p := range way.trunks {
			for _, g := range way.trunks[p] {
				of := counts(w, g, p)
				of.end = 1
				l.parts = append(l.parts, of)
			}
		}
	}
	return l
}

// counts returns the part that a grain at a position is.
func counts(w *Worker, g *grain, position int) part {
	return part{position: position, shard: g.shard, vertices: len(g.vertices), sources: len(g.rows), entries: g.block.Entries(), first: w.begins(), end: w.end}
}
