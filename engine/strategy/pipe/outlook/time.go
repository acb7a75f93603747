package outlook

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/timing"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// timedKey is the place of the times of layers in forecast.Whole's Kept.
const timedKey = "pipe.layers"

// costsOf returns what the layers cost on each shard, by the times of some shards.
func costsOf(ctx context.Context, w *forecast.Whole, sources []int) (*costs.Costs, error) {
	infos := w.Model.Stages()
	timing, is := w.Kept[timedKey].(*costs.Timing)
	if !is {
		var err error
		if timing, err = timed(ctx, w); err != nil {
			return nil, err
		}
		w.Kept[timedKey] = timing
	}
	c := &census.Census{Firsts: w.Layout.Firsts, Sources: sources}
	for shard, n := range w.Edges {
		entries := int(n)
		if w.Model.Form().SelfLoops {
			entries += int(c.Firsts[shard+1] - c.Firsts[shard])
		}
		c.Entries = append(c.Entries, entries)
	}
	return costs.Measured([]*costs.Timing{timing}, infos, c), nil
}

// timed times the layers on a small graph.
func timed(ctx context.Context, w *forecast.Whole) (*costs.Timing, error) {
	topology, firsts, err := w.Graph.Sample(w.Recipe.Seed)
	if err != nil {
		return nil, err
	}
	census := census.New(firsts, topology, w.Model.Form())
	var shards []int
	most := 0
	for shard := range len(firsts) - 1 {
		shards = append(shards, shard)
		z := nn.Size{Targets: int(firsts[shard+1] - firsts[shard]), Sources: census.Sources[shard], Entries: census.Entries[shard]}
		in := nn.InputSize{Rows: z.Sources, Sparse: w.Graph.Sparse, Entries: int(float64(z.Sources) * w.Graph.Entries)}
		pass, scratch := w.Model.ForecastPart(0, len(w.Model.Stages()), in, z)
		most = max(most, pass+scratch+4*z.Sources*w.Graph.Columns)
	}
	if err := forecast.Room(uint64(most), "computes a shard to time the layers"); err != nil {
		return nil, err
	}
	device := cpu.New(0)
	defer device.Close()
	arena, err := device.NewArena(0)
	if err != nil {
		return nil, err
	}
	defer arena.Close()
	rows, end, err := w.Rows()
	if err != nil {
		return nil, err
	}
	defer end()
	weights := arena.Alloc(device.Type(), 1, w.Model.Size())
	first, err := w.Model.Initial(ctx, w.Recipe.Seed)
	if err != nil {
		return nil, err
	}
	device.Write(weights, first)
	learnt := task.New(w.Recipe.TaskSpec(&w.Graph.About))
	t, err := timing.Layers(ctx, timing.Subject{
		Model: w.Model, Device: device, Weights: weights, Topology: topology,
		Input: func(_, _ int, vertices []uint32) (nn.Input, error) { return rows(vertices), nil },
		Labels: func(to []int32, first uint32) {
			var vertices []uint32
			for i := range to {
				vertices = append(vertices, first+uint32(i))
			}
			copy(to, w.Labels(nil, vertices))
		},
		Loss: func(dz, z tensor.Matrix, labels []int32) float64 {
			return learnt.Loss(device, dz, z, labels, 1/float64(len(labels)))
		},
	}, census, shards)
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	// Layers are timed by their fastest rounds, and a process that may take a part of the
	// processors' time is stopped between rounds.
	slower := w.Rates.Slower()
	for s := range t.Layers {
		t.Layers[s].Forward, t.Layers[s].Backward = t.Layers[s].Forward*slower, t.Layers[s].Backward*slower
	}
	return t, nil
}

// compute returns the seconds of one of the model's stages over all chunks. At each
// position all ways wait for the slowest node.
func (p *plan) compute(s int) (forward, backward float64) {
	for position := range p.shape.Positions() {
		there, back := make([]float64, p.Layout.Nodes), make([]float64, p.Layout.Nodes)
		slowest := 0
		for way := range p.shape.Ways() {
			node := p.seats.Node(0, way)
			first, end := p.shape.Shards(way, position)
			for shard := first; shard < end; shard++ {
				there[node] += p.costs.Forward[s][shard]
				back[node] += p.costs.Backward[s][shard]
				if p.again {
					back[node] += p.costs.Forward[s][shard]
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

// seconds returns the time of so many bytes in so many round trips.
func (p *plan) seconds(bytes, trips float64) float64 {
	return bytes/p.Rates.Bandwidth + trips*p.Rates.RoundTrip
}

// halo returns the seconds of the rows and gradients that ways send each other for one of
// the model's stages.
func (p *plan) halo(s int) float64 {
	if !p.sees(s) || len(p.seats.Members(0)) == 1 {
		return 0
	}
	rows := 0
	for way := range p.shape.Ways() {
		rows = max(rows, p.mirrored[way])
	}
	return 2 * p.seconds(p.share()*float64(rows*p.infos[s].In*number), p.share()*float64(p.shape.Positions()))
}

// parts returns the seconds of an epoch: the layers of the busiest stage, and what it
// waits for. Rows between ways count in full, though some are hidden.
func (p *plan) parts() (t forecast.Parts) {
	ways, members := float64(p.shape.Ways()), float64(len(p.seats.Members(0)))
	compute, wait, history := 0.0, 0.0, 0.0
	for stage := range p.seats.Stages {
		c, h := 0.0, 0.0
		for s := p.cuts[stage]; s < p.cuts[stage+1]; s++ {
			forward, backward := p.compute(s)
			halo := p.halo(s)
			c, h = c+forward+backward, h+halo
			history += forward + halo/2
		}
		if c+h > compute+wait {
			compute, wait = c, h
		}
	}
	bubble := float64(p.seats.Stages-1) / float64(p.shape.Positions()) * (compute + wait)
	boundary, sum := 0.0, 0.0
	for stage := range p.seats.Stages {
		if stage > 0 {
			info := &p.infos[p.cuts[stage]]
			rows := float64(p.Layout.Firsts[len(p.Layout.Firsts)-1]) / ways
			boundary = max(boundary, p.seconds(2*rows*float64(info.In+info.CarryIn)*number, 2*float64(p.seats.Stages-1)))
		}
		if members > 1 {
			sum = max(sum, p.seconds(2*(members-1)/members*float64(p.columnsOf(stage))*number, 2))
		}
	}
	if p.Layout.Nodes > 1 {
		sum += p.Rates.RoundTrip // losses
	}
	t.Compute = compute
	t.Wait = wait + bubble + boundary + sum + history*p.histories()
	return t
}
