package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

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
