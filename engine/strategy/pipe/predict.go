package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Network is what nodes give each other.
type Network struct {
	Bandwidth float64 // bytes a second that come to a node
	RoundTrip float64 // seconds that the smallest question takes
	// Byte and Piece are for how long each of both ends is kept from computing by a byte, and
	// by a piece whatever it has.
	Byte, Piece float64
}

// handling is for how long what a node gives and takes keeps it from computing.
func (n *Network) handling(bytes, pieces float64) float64 {
	return n.Byte*bytes + n.Piece*pieces
}

// Usual is a network that is like many, where nothing is measured.
var Usual = Network{Bandwidth: 1e9, RoundTrip: 1e-4}

// Facts are what a job's time and memory are predicted from: all nodes know the same.
type Facts struct {
	Model    *nn.Model
	Census   *Census
	Costs    *Costs
	Network  Network
	Layout   strategy.Layout
	Settings *strategy.Settings
	Number   int      // bytes of one
	Entries  float64  // that a row of sparse features has; 0: they are dense
	Memory   []uint64 // that each node has for its work; 0: nobody knows
	Judged   int      // every so many epochs, for which all nodes have all weights; 0: never

	parts map[int][][]part // by the number of ways, and by way
	apart bool             // nothing is hidden, as in tests whose time passes between positions
}

// A Prediction is what an epoch takes of some stages and ways, in seconds, on average.
type Prediction struct {
	Stages   int     `json:"stages"`
	Ways     int     `json:"ways"`
	Seconds  float64 `json:"seconds"`  // the sum of all parts
	Compute  float64 `json:"compute"`  // of the stage that is busiest
	Halo     float64 `json:"halo"`     // that this one waits for rows of other ways
	Boundary float64 `json:"boundary"` // by which rows between stages make an epoch longer
	Bubble   float64 `json:"bubble"`   // that the busiest stage waits for the others
	Sum      float64 `json:"sum"`      // adding up gradients, and the update
	History  float64 `json:"history"`  // a period's history, shared by its epochs
	Memory   uint64  `json:"memory"`   // bytes of the node that takes most
	Fits     bool    `json:"fits"`     // all nodes have room
	// Recomputes: backward makes again what forward made, which would not fit.
	Recomputes bool `json:"recomputes,omitempty"`

	cuts []int
}

// A draft is how a job could be done.
type draft struct {
	*Facts
	infos     []nn.StageInfo
	shape     *Shape
	mirrors   *Mirrors
	seats     *Seats
	cuts      []int
	positions int
	hides     []float64 // of each position, the share of work that waits for nobody
	layers    *layers
	// recomputes: backward makes again what forward made.
	recomputes bool
}

// layers are what each of the model's stages takes at each position of a shape in each
// direction. It is the same in all stages of the pipeline, each of whose nodes has one way
// unless there is but one stage: so what was found for one draft serves all of the shape.
type layers struct{ known map[[4]int][2]float64 }

func newLayers() *layers { return &layers{map[[4]int][2]float64{}} }

// draft seats stages of a shape, and cuts the layers so that the slowest of them takes as
// little as can be.
func (f *Facts) draft(stages int, shape *Shape, m *Mirrors, known *layers, recomputes bool) *draft {
	d := &draft{Facts: f, infos: f.Model.Stages(), shape: shape, mirrors: m, positions: shape.Positions(), layers: known, recomputes: recomputes}
	d.seats = seated(stages, shape, &f.Layout)
	for p := range d.positions {
		d.hides = append(d.hides, d.inner(p))
	}
	units := Units(d.infos)
	costs := make([]float64, len(units)-1)
	for u := range costs {
		for s := units[u]; s < units[u+1]; s++ {
			for p := range d.positions {
				for direction := range 2 {
					compute, halo := d.layer(0, s, p, direction)
					costs[u] += compute + halo
				}
			}
		}
	}
	d.cuts = Split(costs, d.seats.Stages)
	for i, u := range d.cuts {
		d.cuts[i] = units[u]
	}
	return d
}

// layer is how long a stage of the model takes at a position in one direction where the
// ways sit as in a stage of the pipeline, and how long of rows of other ways. All ways
// wait for the slowest in each.
func (d *draft) layer(stage, s, position, direction int) (compute, halo float64) {
	at := [4]int{s, position, direction, 0}
	if d.recomputes {
		at[3] = 1
	}
	took, ok := d.layers.known[at]
	if !ok {
		took[0] = d.compute(stage, s, position, direction)
		took[1] = d.halo(stage, s, position, direction, took[0])
		d.layers.known[at] = took
	}
	return took[0], took[1]
}

// compute is how long the slowest node computes.
func (d *draft) compute(stage, s, position, direction int) (most float64) {
	nodes := make([]float64, d.Layout.Nodes)
	for way := range d.shape.Ways() {
		took := &nodes[d.seats.Node(stage, way)]
		first, end := d.shape.Shards(way, position)
		for shard := first; shard < end; shard++ {
			if direction == forwards {
				*took += d.Costs.Forward[s][shard]
				continue
			}
			*took += d.Costs.Backward[s][shard]
			if d.recomputes {
				*took += d.Costs.Again[s][shard]
			}
			if d.positions > 1 && s > 0 && d.infos[s].Hops > 0 {
				*took += d.Costs.Row * float64(d.histories(shard)*d.infos[s].In)
			}
		}
		most = max(most, *took)
	}
	return most
}

// histories counts rows that going back through a layer goes through once more, of a shard:
// gradients at histories, which count twice, and own rows that become histories again.
func (d *draft) histories(shard int) (n int) {
	own := d.Census.vertices(shard)
	if p := &d.Settings.Pipe; !p.Single && !p.KeepGradients {
		n = d.Census.Sources[shard] - own
	}
	if d.recomputes {
		n += own
	}
	return n
}

// halo is how long ways wait for the rows, or the gradients, that they bring each other of a
// layer, and take to bring them: what they need not wait with hides some of it.
func (d *draft) halo(stage, s, position, direction int, compute float64) float64 {
	if s == 0 || d.infos[s].Hops == 0 || d.shape.Ways() == 1 {
		return 0
	}
	width, worst, moved, bytes, pieces := float64(d.infos[s].In), 0.0, 0.0, 0.0, 0.0
	p := &d.Settings.Pipe
	share := 1.0
	if p.HaloOf() == strategy.RowsSampled {
		share = p.ShareOf()
	}
	nodes := make([]moves, d.Layout.Nodes)
	for to := range d.shape.Ways() {
		for from := range d.shape.Ways() {
			if to == from {
				continue
			}
			gives, takes := d.seats.Node(stage, from), d.seats.Node(stage, to)
			if direction == backwards {
				gives, takes = takes, gives
			}
			first, end := d.mirrors.from(to, from, position)
			if first == end {
				continue
			}
			rows := share * float64(end-first) * width
			const read, written = 2, 3 // gathered and read; written, cleared and added
			nodes[gives].numbers += read * rows
			nodes[takes].numbers += written * rows
			if bytes := rows * float64(d.Number); gives != takes {
				pieces := d.pieces(bytes, direction)
				nodes[gives].bytes, nodes[gives].pieces = nodes[gives].bytes+bytes, nodes[gives].pieces+pieces
				nodes[takes].bytes, nodes[takes].pieces = nodes[takes].bytes+bytes, nodes[takes].pieces+pieces
				nodes[takes].in += bytes
			}
		}
	}
	for _, n := range nodes {
		worst, moved, bytes, pieces = max(worst, n.in), max(moved, n.numbers), max(bytes, n.bytes), max(pieces, n.pieces)
	}
	took, hidden := moved*d.Costs.Row, d.hides[position]*compute
	if p.HaloOf() == strategy.RowsPrevious {
		hidden = 2 * compute // of the layers before, too
	}
	if d.apart {
		hidden = 0
	}
	if worst > 0 {
		// What keeps from computing is not hidden by that. Bytes that are under way are
		// handled meanwhile; a network that was measured by few pieces says nothing of many.
		took += d.Network.handling(0, pieces) + max(d.Network.handling(bytes, 0), worst/d.Network.Bandwidth+d.Network.RoundTrip-hidden)
	}
	if p.HaloOf() == strategy.RowsSkip {
		took /= float64(p.AgeOf() + 1)
	}
	return took
}

// moves are what a node gives and takes of a layer: numbers that it moves, bytes that come
// to it, and bytes and pieces that it gives or takes.
type moves struct{ numbers, in, bytes, pieces float64 }

// pieces is how many so many bytes of rows go in: forward, as shards are computed.
func (d *draft) pieces(bytes float64, direction int) float64 {
	if direction == backwards {
		return 1
	}
	return min(mostPieces, max(1, bytes/float64(pieceBytes)))
}

// edge is how long the rows of a position take between a stage and the next, and how long
// each of the two takes to hand them over.
func (d *draft) edge(next, position int) (travels, handed float64) {
	info := &d.infos[d.cuts[next]]
	most, trips := 0, 0
	for _, node := range d.seats.Members(next) {
		rows, ways := 0, 0
		for way := range d.shape.Ways() {
			if d.seats.Node(next, way) == node {
				first, end := d.shape.Vertices(way, position)
				rows, ways = rows+int(end-first), ways+1
			}
		}
		most, trips = max(most, rows), max(trips, ways)
	}
	numbers := float64(most * (info.In + info.CarryIn))
	bytes := numbers * float64(d.Number)
	return float64(trips)*d.Network.RoundTrip + bytes/d.Network.Bandwidth, numbers*d.Costs.Row + d.Network.handling(bytes, float64(trips))
}

// predict says what an epoch takes.
func (d *draft) predict() Prediction {
	p := Prediction{Stages: d.seats.Stages, Ways: d.shape.Ways(), cuts: d.cuts}
	p.Memory, p.Fits = d.room()
	p.Recomputes = d.recomputes
	whole, compute, halo := d.through(true)
	inside, _, _ := d.through(false)
	p.Boundary = whole - inside
	for s := range compute {
		if compute[s]+halo[s] > p.Compute+p.Halo {
			p.Compute, p.Halo = compute[s], halo[s]
		}
	}
	p.Bubble = max(0, inside-p.Compute-p.Halo)
	p.Compute += d.begins()
	p.Sum = d.sums()
	if d.positions > 1 && d.Settings.Pipe.HistoriesOf() == Made { // others are made once, or never
		p.History = d.history() / float64(d.Settings.Pipe.PeriodOf())
	}
	p.Seconds = p.Compute + p.Halo + p.Boundary + p.Bubble + p.Sum + p.History
	return p
}

// through is how long all positions take there and back, and what of it each stage
// computes and waits for other ways. Without edges, rows come to the next stage at once.
func (d *draft) through(edges bool) (whole float64, compute, halo []float64) {
	stages := d.seats.Stages
	compute, halo = make([]float64, stages), make([]float64, stages)
	ends := make([]float64, stages)         // of what each stage has done so far
	arrived := make([]float64, d.positions) // at the next stage, by the places of the order
	turn := func(stage, direction int) {
		from, to := stage-1, stage+1
		if direction == backwards {
			from, to = to, from
		}
		came := ends[stage]
		for place := range d.positions {
			p := place
			if direction == backwards {
				p = d.positions - 1 - place
			}
			start := ends[stage]
			if d.there(from) {
				travels, handed := 0.0, 0.0
				if edges {
					travels, handed = d.edge(max(stage, from), p)
				}
				// What arrives follows what has arrived.
				came = max(came, arrived[place]) + travels
				start = max(start, came) + handed
			}
			for s := d.cuts[stage]; s < d.cuts[stage+1]; s++ {
				c, h := d.layer(stage, s, p, direction)
				compute[stage], halo[stage], start = compute[stage]+c, halo[stage]+h, start+c+h
			}
			if direction == backwards {
				beside := d.Costs.Shard * float64(d.shards(stage, p))
				compute[stage], start = compute[stage]+beside, start+beside
			}
			if edges && d.there(to) {
				_, handed := d.edge(max(stage, to), p)
				start += handed
			}
			ends[stage], arrived[place] = start, start
		}
	}
	for stage := range stages {
		turn(stage, forwards)
	}
	for stage := stages - 1; stage >= 0; stage-- {
		turn(stage, backwards)
	}
	for _, end := range ends {
		whole = max(whole, end)
	}
	return whole, compute, halo
}

// there says whether there is such a stage.
func (d *draft) there(stage int) bool { return stage >= 0 && stage < d.seats.Stages }

// shards counts those of a position that the busiest node of a stage has.
func (d *draft) shards(stage, position int) (most int) {
	for _, node := range d.seats.Members(stage) {
		n := 0
		for way := range d.shape.Ways() {
			if d.seats.Node(stage, way) == node {
				first, end := d.shape.Shards(way, position)
				n += end - first
			}
		}
		most = max(most, n)
	}
	return most
}

// begins is how long rows and gradients take to be set to what an epoch begins with.
func (d *draft) begins() float64 {
	most := 0
	for stage := range d.seats.Stages {
		for _, node := range d.seats.Members(stage) {
			most = max(most, d.numbers(stage, node))
		}
	}
	passes := 1.0
	if d.positions > 1 {
		passes = 2
	}
	return passes * float64(most) * d.Costs.Row
}

// numbers counts those of the rows that the layers of a node see.
func (d *draft) numbers(stage, node int) (n int) {
	for way := range d.shape.Ways() {
		if d.seats.Node(stage, way) != node {
			continue
		}
		first, end, _, _ := d.shape.Of(way)
		for s := d.cuts[stage]; s < d.cuts[stage+1]; s++ {
			if s > 0 && d.infos[s].Hops > 0 {
				n += (int(end-first) + len(d.mirrors.of[way])) * d.infos[s].In
			}
		}
	}
	return n
}

// sums is how long it takes to add up the gradients of a stage, and to update its weights:
// all wait for the slowest stage.
func (d *draft) sums() (took float64) {
	for stage := range d.seats.Stages {
		from, to := columnsOf(d.Model, d.cuts[stage], d.cuts[stage+1])
		columns, members := float64(to-from), float64(len(d.seats.Members(stage)))
		shards := 0
		for p := range d.positions {
			shards += d.shards(stage, p)
		}
		of := columns * (d.Costs.Sum*float64(shards) + d.Costs.Step/float64(d.Model.Size()) + d.Costs.Row)
		if members > 1 {
			const trips = 2 // pieces, and what they add up to
			of += trips * (d.Network.RoundTrip + (members-1)/members*columns*float64(d.Number)/d.Network.Bandwidth)
		}
		took = max(took, of)
	}
	if d.Layout.Nodes > 1 {
		took += d.Network.RoundTrip // losses
	}
	if d.Judged > 0 && parted(d.seats, d.Layout.Nodes) {
		others := float64(d.Model.Size()) * float64(d.Number) // about: a stage has little of all
		took += (d.Network.RoundTrip + others/d.Network.Bandwidth) / float64(d.Judged)
	}
	return took
}

// history is how long it takes to make one: stages work one after the other.
func (d *draft) history() (took float64) {
	for stage := range d.seats.Stages {
		for p := range d.positions {
			for s := d.cuts[stage]; s < d.cuts[stage+1]; s++ {
				compute, halo := d.layer(stage, s, p, forwards)
				took += compute + halo
			}
			if stage > 0 {
				travels, handed := d.edge(stage, p)
				took += travels - d.Network.RoundTrip + 2*handed
			}
		}
		if stage > 0 {
			took += d.Network.RoundTrip
		}
	}
	return took
}

// String is a prediction in words.
func (p *Prediction) String() string {
	return fmt.Sprintf("%s of %s: %s", counted(p.Stages, "stage"), counted(p.Ways, "way"), seconds(p.Seconds))
}

// seconds writes a time as people read it.
func seconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.3g us", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
