// Package timing measures how long a model's layers take: forward and backward, on single
// shards of this node.
package timing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	// timedShards bounds the shards that a node times its layers on, and timedFor about
	// how long it does so.
	timedShards = 4
	timedFor    = time.Second / 2
	// timedRounds bounds how often each shard is computed. The fastest round counts: the
	// first one also takes memory and reads features.
	timedRounds = 10
	fewRounds   = 3
	// mostRows bounds the rows in memory that layers gather from. More than that do not fit
	// into a processor's caches either.
	mostRows = 1 << 16
)

// A Subject is the model that is timed, and what it reads.
type Subject struct {
	Model    *nn.Model
	Device   tensor.Device
	Weights  tensor.Matrix
	Topology *sample.Topology // of this node's shards
	// Input returns the features of some vertices of a shard, at a place: always the first.
	Input  func(place, shard int, vertices []uint32) (nn.Input, error)
	Labels func(to []int32, first uint32)
	Loss   func(dz, z tensor.Matrix, labels []int32) float64
}

// Layers times all layers forward and backward on shards that Choose has chosen. Weights stay
// as they are.
func Layers(ctx context.Context, t Subject, c *census.Census, shards []int) (*costs.Timing, error) {
	timing := &costs.Timing{Layers: make([]costs.LayerTime, len(t.Model.Stages()))}
	if len(shards) == 0 {
		return timing, nil
	}
	r := &stopwatch{task: &t, infos: t.Model.Stages(), rows: map[int]*level{}}
	defer r.close()
	if err := r.time(ctx, c, shards, timing); err != nil {
		return nil, fmt.Errorf("time the layers: %w", err)
	}
	return timing, nil
}

// spread returns at most so many of some shards, evenly spaced, the first among them.
func spread(shards []int, most int) []int {
	if len(shards) <= most {
		return shards
	}
	some := make([]int, most)
	for i := range some {
		some[i] = shards[i*len(shards)/most]
	}
	return some
}

// A stopwatch computes single shards and measures each layer.
type stopwatch struct {
	task  *Subject
	infos []nn.StageInfo
	pass  *nn.Pass
	space tensor.Arena // of the pass
	kept  tensor.Arena
	rows  map[int]*level // that layers gather from, by width

	// Of the shard that is timed.
	vertices []uint32
	shard    int
	block    *sample.Block
	places   []int32  // of the block's sources among rows
	reads    []uint32 // the same, to read from
	labels   []int32
	took     []costs.LayerTime // the fastest of all rounds
	last     time.Time
}

func (r *stopwatch) time(ctx context.Context, c *census.Census, shards []int, to *costs.Timing) (err error) {
	d := r.task.Device
	if r.space, err = d.NewArena(0); err != nil {
		return err
	}
	if r.kept, err = d.NewArena(0); err != nil {
		return err
	}
	rows := min(r.task.Topology.Vertices(), mostRows)
	for _, shard := range shards {
		rows = max(rows, c.Vertices(shard))
	}
	for s, info := range r.infos {
		if s > 0 && info.Hops > 0 && r.rows[info.In] == nil {
			r.rows[info.In] = &level{rows: r.zeros(rows, info.In), back: r.zeros(rows, info.In)}
		}
	}
	r.pass = r.task.Model.NewPass(d, r.space)
	r.pass.Weights, r.pass.Gradients, r.pass.Train = r.task.Weights, r.zeros(1, r.task.Model.Size()), true
	nominal := costs.Nominal(r.infos, c)
	begin := time.Now()
	for i, shard := range shards {
		if i > 0 && time.Since(begin) > timedFor {
			return nil
		}
		if err := r.load(ctx, c, shard, rows); err != nil {
			return err
		}
		until := time.Now().Add(timedFor / time.Duration(len(shards)))
		for round := 0; round < fewRounds || round < timedRounds && time.Now().Before(until); round++ {
			if err := r.round(ctx); err != nil {
				return err
			}
			if round == 1 && time.Since(begin) > timedFor {
				break
			}
		}
		for s := range r.took {
			l := &to.Layers[s]
			l.Forward, l.NominalForward = l.Forward+r.took[s].Forward, l.NominalForward+nominal.Forward[s][shard]
			l.Backward, l.NominalBackward = l.Backward+r.took[s].Backward, l.NominalBackward+nominal.Backward[s][shard]
		}
	}
	return nil
}

// A level is the rows that layers of one width read, and the gradients at them.
type level struct{ rows, back tensor.Matrix }

func (r *stopwatch) zeros(rows, columns int) tensor.Matrix {
	m := r.kept.Alloc(r.task.Device.Type(), rows, columns)
	r.task.Device.Zero(m)
	return m
}

// load prepares a shard.
func (r *stopwatch) load(ctx context.Context, c *census.Census, shard, rows int) error {
	r.shard, r.vertices, r.places, r.reads, r.took = shard, nil, nil, nil, nil
	for v := c.Firsts[shard]; v < c.Firsts[shard+1]; v++ {
		r.vertices = append(r.vertices, v)
	}
	batch := &sample.Batch{}
	s := sample.New(r.task.Topology, sample.Options{Fanouts: []int{0}, Form: r.task.Model.Form(), Inverses: anyDegree})
	if err := s.Sample(ctx, batch, 0, 0, r.vertices); err != nil {
		return fmt.Errorf("find the edges of shard %d: %w", shard, err)
	}
	r.block = &batch.Blocks[0]
	r.block.Transpose()
	for _, v := range r.block.Vertices {
		r.places, r.reads = append(r.places, int32(int(v)%rows)), append(r.reads, uint32(int(v)%rows))
	}
	r.labels = make([]int32, len(r.vertices))
	r.task.Labels(r.labels, r.vertices[0])
	return nil
}

// anyDegree stands in for the degrees of vertices whose edges are elsewhere.
func anyDegree(_ context.Context, vertices []uint32, to []float32) error {
	for i := range vertices {
		to[i] = 1
	}
	return nil
}

// round computes the shard forward and backward.
func (r *stopwatch) round(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d, first := r.task.Device, r.took == nil
	if first {
		r.took = make([]costs.LayerTime, len(r.infos))
	}
	for _, l := range r.rows {
		d.Zero(l.back) // so that sums stay finite
	}
	d.Zero(r.pass.Gradients)
	r.space.Reset()
	r.pass.Begin()
	var x, carry tensor.Matrix
	var err error
	r.last = time.Now()
	for s := range r.infos {
		if x, err = r.forward(s, x, carry); err != nil {
			return err
		}
		if s == 0 && r.infos[s].CarryOut > 0 {
			carry = x
		}
		r.lap(&r.took[s].Forward, first)
	}
	dy, dcarry := r.space.Alloc(d.Type(), x.Rows, x.Cols), tensor.Matrix{}
	if !carry.None() {
		dcarry = r.space.Alloc(d.Type(), carry.Rows, carry.Cols)
		d.Zero(dcarry)
	}
	r.task.Loss(dy, x, r.labels)
	for s := range slices.Backward(r.infos) {
		dy = r.backward(s, dy, dcarry)
		r.lap(&r.took[s].Backward, first)
	}
	return nil
}

// lap keeps the time since the previous lap, if it is the shortest.
func (r *stopwatch) lap(to *float64, first bool) {
	now := time.Now()
	if took := now.Sub(r.last).Seconds(); first || took < *to {
		*to = took
	}
	r.last = now
}

// forward computes one of the model's stages.
func (r *stopwatch) forward(s int, x, carry tensor.Matrix) (tensor.Matrix, error) {
	var in nn.Input
	var block *sample.Block
	seen, vertices := tensor.Matrix{}, r.vertices
	if s > 0 {
		seen = r.pass.Enter(s, x, r.vertices)
	}
	if r.infos[s].Hops > 0 {
		block, vertices = r.block, r.block.Vertices
		if s > 0 {
			rows := r.rows[r.infos[s].In].rows
			own := rows.RowRange(min(int(r.places[0]), rows.Rows-seen.Rows), seen.Rows)
			r.task.Device.Combine(own, 1, seen, 0, tensor.Matrix{})
			seen = r.space.Alloc(r.task.Device.Type(), len(r.places), r.infos[s].In)
			r.task.Device.Gather(seen, []tensor.Part{{X: rows}}, r.reads)
		}
	}
	if s == 0 {
		var err error
		if in, err = r.task.Input(0, r.shard, vertices); err != nil {
			return x, err
		}
	}
	return r.pass.Layer(s, block, in, seen, carry), nil
}

// backward computes the gradient before one of the model's stages.
func (r *stopwatch) backward(s int, dy, dcarry tensor.Matrix) tensor.Matrix {
	if s == 0 && r.infos[s].CarryOut > 0 {
		r.task.Device.Combine(dy, 1, dy, 1, dcarry)
	}
	dseen := r.pass.Back(s, dy, dcarry, s > 0)
	if s == 0 {
		return dy
	}
	dx := dseen.RowRange(0, len(r.vertices))
	if r.infos[s].Hops > 0 {
		r.task.Device.ScatterAdd(r.rows[r.infos[s].In].back, dseen, r.places)
	}
	r.pass.Leave(s, dx)
	return dx
}

func (r *stopwatch) close() {
	for _, a := range []tensor.Arena{r.space, r.kept} {
		if a != nil {
			a.Close()
		}
	}
}
