package outlook

import (
	"context"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Of returns the descriptor of pipe or graph with its forecasts.
func Of(d train.Descriptor) train.Descriptor {
	d.Forecast.Whole = forecastOf
	return d
}

// A plan is one arrangement of a job, with what is counted of it.
type plan struct {
	*forecast.Whole
	settings pipe.Settings
	infos    []nn.StageInfo
	shape    *arrange.Shape
	seats    *arrange.Seats
	cuts     []int
	mirrors  [][]int32   // of each way, in each shard
	mirrored []int       // the same, of each way
	sources  []int       // of each shard: rows that its block reads, its own included
	lates    map[int]int // of shards: vertices that read rows of other ways, once they are counted
	costs    *costs.Costs
	timed    []uint64 // of each node: what it takes to time layers
	again    bool     // backward computes again what forward computed
}

// number is the bytes of a number.
const number = 4

// forecastOf forecasts a job: by the arrangement that its settings name or, where nodes
// choose, by the one that takes least time of those that fit.
func forecastOf(ctx context.Context, w *forecast.Whole) (best forecast.Outcome, err error) {
	settings := pipe.Of(&w.Recipe.Sharing)
	trains := *w
	trains.Model = settings.Trains(w.Model)
	w = &trains
	var plans []*plan
	sources := make([]int, len(w.Edges))
	for shard, all := range w.Graph.Into(w.Layout.Firsts, w.Layout.Firsts, true) {
		for _, n := range all {
			sources[shard] += int(n)
		}
	}
	costs, err := costsOf(ctx, w, sources)
	if err != nil {
		return best, err
	}
	each := plan{Whole: w, settings: settings, infos: w.Model.Stages(), sources: sources, costs: costs, again: settings.Recomputes()}
	each.timed = each.timedOn()
	for _, ways := range wayNumbers(w, &settings) {
		p := each
		if err := p.shapeOf(ways); err != nil {
			best.Why = err.Error()
			return best, nil //nolint:nilerr // this is the forecast
		}
		for _, stages := range p.stageNumbers() {
			of := p
			of.seat(stages)
			plans = append(plans, &of)
		}
	}
	found := false
	for _, p := range plans {
		o := p.outcome()
		if w.Memory > 0 && o.Memory > w.Memory && settings.MayRecompute() {
			p.again = true
			o = p.outcome()
		}
		fits, before := w.Memory == 0 || o.Memory <= w.Memory, w.Memory == 0 || best.Memory <= w.Memory
		if !found || fits && !before || fits == before && (fits && o.Seconds < best.Seconds || !fits && o.Memory < best.Memory) {
			best, found = o, true
		}
	}
	return best, nil
}

// wayNumbers returns the numbers of ways to consider: powers of two, where nodes choose.
func wayNumbers(w *forecast.Whole, s *pipe.Settings) (all []int) {
	nodes := w.Layout.Nodes
	switch {
	case s.Ways != strategy.Asked:
		return []int{s.WaysOf(nodes)}
	case s.Deterministic:
		return []int{1}
	}
	most := min(nodes, len(w.Layout.Owners))
	if s.Stages > 0 {
		most = min(most, max(1, nodes/s.Stages))
	}
	for n := 1; n < most; n *= 2 {
		all = append(all, n)
	}
	return append(all, most)
}

// stageNumbers returns the numbers of stages to consider.
func (p *plan) stageNumbers() (all []int) {
	s, nodes, units := &p.settings, p.Layout.Nodes, len(arrange.Units(p.infos))-1
	if s.Graph || s.Stages != strategy.Asked {
		given := *s
		given.Ways = p.shape.Ways()
		return []int{min(units, given.StagesOf(nodes, units))}
	}
	for n := 1; n <= max(1, min(nodes/p.shape.Ways(), units, p.shape.Chunks())); n++ {
		all = append(all, n)
	}
	return all
}

// shapeOf divides the graph into ways, by what shards cost, as nodes do.
func (p *plan) shapeOf(ways int) (err error) {
	chunks := ways
	if !p.settings.Graph {
		chunks = p.settings.ChunksOf(p.Layout.Nodes, len(p.Layout.Owners))
	}
	firsts, units := p.Layout.Firsts, arrange.Units(p.infos)
	costs := make([]uint64, len(p.Edges))
	for shard, edges := range p.Edges {
		for _, c := range arrange.Costs(p.infos, units, int(firsts[shard+1]-firsts[shard]), int(edges)) {
			costs[shard] += uint64(c)
		}
	}
	if p.shape, err = arrange.NewShape(firsts, costs, ways, chunks); err != nil {
		return err
	}
	var runs []uint32
	for way := range ways {
		first, _, _, _ := p.shape.Of(way)
		runs = append(runs, first)
	}
	p.lates = map[int]int{}
	p.mirrors = [][]int32{make([]int32, len(p.Edges))}
	if ways > 1 {
		p.mirrors = p.Graph.Into(append(runs, firsts[len(firsts)-1]), firsts, false)
	}
	for _, of := range p.mirrors {
		n := 0
		for _, in := range of {
			n += int(in)
		}
		p.mirrored = append(p.mirrored, n)
	}
	return nil
}

// seat gives stages and ways to nodes, and cuts the layers so that the slowest stage takes
// as little time as possible.
func (p *plan) seat(stages int) {
	p.seats = arrange.NewSeats(stages, p.shape.Ways(), p.Layout.Nodes, func(node, way int) (n uint64) {
		_, _, first, end := p.shape.Of(way)
		for shard := first; shard < end; shard++ {
			if p.Layout.Owners[shard] == node {
				n += uint64(p.vertices(shard))
			}
		}
		return n
	})
	units := arrange.Units(p.infos)
	costs := make([]float64, len(units)-1)
	for u := range costs {
		for s := units[u]; s < units[u+1]; s++ {
			forward, backward := p.compute(s)
			costs[u] += forward + backward + p.halo(s)
		}
	}
	p.cuts = arrange.Split(costs, p.seats.Stages)
	for i, u := range p.cuts {
		p.cuts[i] = units[u]
	}
}

func (p *plan) vertices(shard int) int {
	return int(p.Layout.Firsts[shard+1] - p.Layout.Firsts[shard])
}

// from returns the vertices of a chunk of one way that another way mirrors.
func (p *plan) from(to, from, position int) (n int) {
	first, end := p.shape.Shards(from, position)
	for shard := first; shard < end; shard++ {
		n += int(p.mirrors[to][shard])
	}
	return n
}

// sees reports whether a stage of the model reads rows of other vertices which earlier
// stages computed.
func (p *plan) sees(s int) bool { return s > 0 && p.infos[s].Hops > 0 }

// columnsOf returns the columns of a gradient that belong to a stage of the pipeline.
func (p *plan) columnsOf(stage int) int {
	from, to := arrange.Columns(p.Model, p.cuts[stage], p.cuts[stage+1])
	return to - from
}

// outcome returns what an epoch takes.
func (p *plan) outcome() (o forecast.Outcome) {
	sent := p.sent()
	o.Bytes, o.Once = sent.epoch, sent.once
	o.Memory = p.memory()
	o.Parts = p.parts()
	o.Parts.Once = float64(slices.Max(sent.came)) / p.Rates.Bandwidth
	o.Seconds = o.Parts.Compute + o.Parts.Wait
	return o
}

// share returns the share of the rows between ways that an epoch sends, on average.
func (p *plan) share() float64 {
	switch s := &p.settings; s.Halo {
	case pipe.Sampled:
		return float64(s.Share) / 100
	case pipe.Skip:
		return 1 / float64(s.Age+1)
	}
	return 1
}

// histories returns in how many of the epochs a history is made, on average.
func (p *plan) histories() float64 {
	if p.shape.Positions() == 1 || p.settings.Histories != pipe.Made {
		return 0
	}
	return 1 / float64(p.settings.Period)
}

// scaled adds counts times a factor.
func scaled(to *peer.Counts, k peer.Kind, bytes, requests, by float64) {
	to.Bytes[k] += uint64(math.Round(bytes * by))
	to.Requests[k] += uint64(math.Round(requests * by))
}
