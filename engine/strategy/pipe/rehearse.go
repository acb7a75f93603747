package pipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	// rehearsed is about how long a node times its layers, and rounds how often it times
	// each at most: of several times, the one in the middle is taken.
	rehearsed = time.Second
	rounds    = 5
	// mostTimed bounds the shards that a node times, and mostRows the rows that neighbours
	// of them lie in, which are as many as vertices where there are fewer.
	mostTimed = 32
	mostRows  = 1 << 18
)

// Rehearse times all layers on some shards, one after the other, as a worker computes
// them: what is learnt means nothing, and the job's weights stay as they are. The task
// needs neither Shape nor Seats nor Cuts; its Features serve one place.
func Rehearse(ctx context.Context, t Task, firsts []uint32, shards []int) (*Timing, error) {
	shards = slices.DeleteFunc(slices.Clone(shards), func(s int) bool { return firsts[s] == firsts[s+1] })
	timing := &Timing{}
	if len(shards) == 0 {
		return timing, nil
	}
	r := &rehearsal{Task: &t, infos: t.Model.Stages()}
	err := r.open(ctx, firsts, spread(shards, mostTimed))
	defer r.close()
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("time the layers: %w", err)
	}
	for _, a := range r.acts {
		if a.times[0] == nil {
			continue // there was no time for it
		}
		timing.Shards = append(timing.Shards, uint32(a.shard))
		for _, seconds := range a.times {
			timing.Times = append(timing.Times, middle(seconds))
		}
	}
	timing.Rest = r.rest()
	return timing, nil
}

// spread takes so many of some shards at most, from all over them.
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

// middle is the one in the middle of some times.
func middle(seconds []float64) float64 {
	if len(seconds) == 0 {
		return 0
	}
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// A rehearsal is all layers of a model, which see their rows in the same memory: nobody
// looks at what they hold.
type rehearsal struct {
	*Task
	infos  []nn.StageInfo
	acts   []*act
	widths map[int]*width
	pass   *nn.Pass
	space  tensor.Arena // of the pass
	kept   tensor.Arena
	shards []float64 // what was done of each shard beside layers
	sum    []byte    // a gradient, as it is kept
}

// An act is a shard that is timed.
type act struct {
	shard    int
	vertices []uint32
	batch    sample.Batch
	block    *sample.Block
	rows     []int32 // of its sources
	labels   []int32
	times    [][]float64 // of each stage, in each direction
}

// A width is the rows that layers of so many columns see.
type width struct{ rows, back, seen tensor.Matrix }

func (r *rehearsal) open(ctx context.Context, firsts []uint32, shards []int) (err error) {
	rows, most := uint32(min(r.Topology.Vertices(), mostRows)), 0
	s := sample.New(r.Topology, sample.Options{Fanouts: []int{0}, Form: r.Model.Form()})
	for _, shard := range shards {
		a := &act{shard: shard, times: make([][]float64, len(r.infos)*directions)}
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			a.vertices = append(a.vertices, v)
		}
		if err := s.Sample(ctx, &a.batch, 0, 0, a.vertices); err != nil {
			return fmt.Errorf("find the edges of shard %d: %w", shard, err)
		}
		a.block = &a.batch.Blocks[0]
		a.block.Transpose()
		for _, v := range a.block.Vertices {
			a.rows = append(a.rows, int32(v%rows))
		}
		a.labels = make([]int32, len(a.vertices))
		r.Labels(a.labels, a.vertices[0])
		r.acts, most = append(r.acts, a), max(most, a.block.Cols)
	}
	if r.space, err = r.Device.NewArena(0); err != nil {
		return err
	}
	if r.kept, err = r.Device.NewArena(0); err != nil {
		return err
	}
	zeros := func(rows, columns int) tensor.Matrix {
		m := r.kept.Alloc(r.Device.Type(), rows, columns)
		r.Device.Zero(m)
		return m
	}
	r.widths = map[int]*width{}
	for i, s := range r.infos {
		if i > 0 && s.Hops > 0 && r.widths[s.In] == nil {
			r.widths[s.In] = &width{zeros(int(rows), s.In), zeros(int(rows), s.In), zeros(most, s.In)}
		}
	}
	r.pass = r.Model.NewPass(r.Device, r.space)
	r.pass.Weights, r.pass.Gradients, r.pass.Train = r.Weights, zeros(1, r.Model.Size()), true
	r.sum = room(bytes(r.pass.Gradients))
	return nil
}

func (r *rehearsal) close() {
	for _, a := range []tensor.Arena{r.space, r.kept} {
		if a != nil {
			a.Close()
		}
	}
}

// run times shard after shard, round after round. The first takes its memory, and is done
// once more.
func (r *rehearsal) run(ctx context.Context) error {
	if err := r.once(ctx, r.acts[0]); err != nil {
		return err
	}
	clear(r.acts[0].times)
	r.shards = r.shards[:0]
	begin := time.Now()
	for range rounds {
		for _, a := range r.acts {
			if err := r.once(ctx, a); err != nil {
				return err
			}
			if time.Since(begin) > rehearsed {
				return nil
			}
		}
	}
	return nil
}

// A watch tells how long it is since it was asked last.
type watch time.Time

func (w *watch) lap() float64 {
	now := time.Now()
	took := now.Sub(time.Time(*w)).Seconds()
	*w = watch(now)
	return took
}

// once has a shard go forward, forward again and back, and notes what that took.
func (r *rehearsal) once(ctx context.Context, a *act) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, w := range r.widths {
		r.Device.Zero(w.back) // so that what is added up in it stays finite
	}
	note := func(s, direction int, seconds float64) {
		at := s*directions + direction
		a.times[at] = append(a.times[at], seconds)
	}
	var x, carry tensor.Matrix
	for again := range 2 {
		r.space.Reset()
		r.pass.Begin()
		x, carry = tensor.Matrix{}, tensor.Matrix{}
		w := watch(time.Now())
		for s := range r.infos {
			var err error
			if x, err = r.forward(a, s, again == 0, x, carry); err != nil {
				return err
			}
			if s == 0 && r.infos[s].CarryOut > 0 {
				carry = x
			}
			note(s, again, w.lap())
		}
	}
	w := watch(time.Now())
	r.Device.Zero(r.pass.Gradients)
	beside := w.lap()
	dy, dcarry := r.space.Alloc(r.Device.Type(), x.Rows, x.Cols), tensor.Matrix{}
	if !carry.None() {
		dcarry = r.space.Alloc(r.Device.Type(), carry.Rows, carry.Cols)
		r.Device.Zero(dcarry)
	}
	r.Loss(dy, x, a.labels)
	for s := len(r.infos) - 1; s >= 0; s-- {
		dy = r.back(a, s, dy, dcarry)
		note(s, 2, w.lap())
	}
	read(r.Device, r.sum, r.pass.Gradients)
	r.shards = append(r.shards, beside+w.lap())
	return nil
}

// forward is one stage of the model. The second time, what it sees of others is there.
func (r *rehearsal) forward(a *act, s int, first bool, x, carry tensor.Matrix) (tensor.Matrix, error) {
	var in nn.Input
	var block *sample.Block
	seen, vertices := tensor.Matrix{}, a.vertices
	if s > 0 {
		seen = r.pass.Enter(s, x, a.vertices)
	}
	if r.infos[s].Hops > 0 {
		block, vertices = a.block, a.block.Vertices
		if s > 0 {
			at := r.widths[r.infos[s].In]
			if first {
				r.Device.Combine(at.seen.RowRange(0, seen.Rows), 1, seen, 0, tensor.Matrix{}) // into the way's rows
			}
			seen = at.seen.RowRange(0, len(a.rows))
			if first {
				r.Device.Gather(seen, []tensor.Part{{X: at.rows}}, unsigned(a.rows))
			}
		}
	}
	if s == 0 {
		var err error
		if in, err = r.Features.Input(0, a.shard, vertices); err != nil {
			return x, err
		}
	}
	return r.pass.Layer(s, block, in, seen, carry), nil
}

// back goes back through one stage of the model.
func (r *rehearsal) back(a *act, s int, dy, dcarry tensor.Matrix) tensor.Matrix {
	if s == 0 && r.infos[s].CarryOut > 0 {
		r.Device.Combine(dy, 1, dy, 1, dcarry)
	}
	dseen := r.pass.Back(s, dy, dcarry, s > 0)
	if s == 0 {
		return dy
	}
	dx := dseen.RowRange(0, len(a.vertices))
	if r.infos[s].Hops > 0 {
		r.Device.ScatterAdd(r.widths[r.infos[s].In].back, dseen, a.rows)
	}
	r.pass.Leave(s, dx)
	return dx
}

// rest times what is done of no layer.
func (r *rehearsal) rest() (of rest) {
	of.Shard = middle(r.shards)
	for _, w := range r.widths {
		if n := w.rows.Rows * w.rows.Cols; n > 0 {
			of.Row = each(n, func() { r.Device.Combine(w.back, 1, w.rows, 0, tensor.Matrix{}) })
			break
		}
	}
	const leaves = 4
	size := r.Model.Size()
	adds, row := exchange.NewSummer[float32](size), make([]float32, size)
	of.Sum = each(leaves*size, func() {
		adds.Begin([]exchange.Span{{First: 0, Level: 2}})
		for leaf := range leaves {
			copy(adds.Row(leaf), row)
		}
		adds.Sums()
	})
	// An update goes through weights, gradients and two moments.
	const passes = 6
	of.Step = passes * each(1, func() { r.Device.Finite(r.Weights) })
	return of
}

// each is how long something takes for each of so many numbers.
func each(numbers int, do func()) float64 {
	do()
	var took []float64
	for range rounds {
		w := watch(time.Now())
		do()
		took = append(took, w.lap())
	}
	return middle(took) / float64(numbers)
}
