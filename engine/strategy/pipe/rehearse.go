package pipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	// rehearsed is about how long a node times its layers, and fewest how often it times
	// each at least, as far as that leaves time for a shard; rounds bounds how often it does
	// so where they take next to nothing.
	rehearsed = time.Second
	fewest    = 2
	rounds    = 20
	// mostTimed bounds the shards that a node times, and enoughEdges those of which it times
	// no further one.
	mostTimed   = 32
	enoughEdges = 1 << 24
	// cold is more memory than a processor's caches hold. What a worker comes back to after
	// all other layers and shards is not in them, so it must not be here.
	cold = 128 << 20
)

// mostRows bounds the rows that neighbours of shards lie in, which are as many as vertices
// where there are fewer, and a shard's at least; a variable for the sake of tests.
var mostRows = 1 << 18

// Rehearse times all layers on some shards, one after the other, as a worker computes
// them: what is learnt means nothing, and the job's weights stay as they are. The task
// needs neither Shape nor Seats nor Cuts; its Features serve one place.
func Rehearse(ctx context.Context, t Task, firsts []uint32, shards []int) (*Timing, error) {
	shards = slices.DeleteFunc(slices.Clone(shards), func(s int) bool { return firsts[s] == firsts[s+1] })
	timing := &Timing{}
	r := &rehearsal{Task: &t, infos: t.Model.Stages()}
	defer r.close()
	if len(shards) > 0 {
		err := r.open(ctx, firsts, spread(shards, mostTimed))
		if err == nil {
			err = r.run(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("time the layers: %w", err)
		}
		r.settle()
		for _, a := range r.acts {
			timing.Shards = append(timing.Shards, uint32(a.shard))
			for i := range a.times {
				timing.Times = append(timing.Times, a.times[i].alone)
			}
		}
		timing.Rest = r.rest()
	}
	if t.Exchange != nil && !t.Work.Alone() {
		var err error
		if timing.Rest.Burden, err = r.weigh(ctx); err != nil {
			return nil, err
		}
	}
	return timing, nil
}

// spread takes so many of some things at most, from all over them, the first among them.
func spread[E any](things []E, most int) []E {
	if len(things) <= most {
		return things
	}
	some := make([]E, most)
	for i := range some {
		some[i] = things[i*len(things)/most]
	}
	return some
}

// A rehearsal is all layers of a model. Where rows take more memory than is cold, layers
// see them in that of others: nobody looks at what they hold.
type rehearsal struct {
	*Task
	infos  []nn.StageInfo
	acts   []*act
	levels []*level // of each stage; nil where it sees no others
	pass   *nn.Pass
	space  tensor.Arena // of the pass
	kept   tensor.Arena
	shards times  // of what is done of each shard beside layers
	clears times  // and of each round
	sum    []byte // a gradient, as it is kept
	// took is for how long layers have been computed until then, and due how long that
	// should have been.
	took, due float64
	until     time.Time
}

// An act is a shard that is timed.
type act struct {
	shard    int
	vertices []uint32
	batch    sample.Batch
	block    *sample.Block
	rows     []int32 // of its sources
	labels   []int32
	times    []times // of each stage, in each direction
}

func (r *rehearsal) open(ctx context.Context, firsts []uint32, shards []int) (err error) {
	rows := uint32(min(r.Topology.Vertices(), mostRows))
	for _, shard := range shards {
		rows = max(rows, firsts[shard+1]-firsts[shard]) // a shard's own lie side by side
	}
	edges := 0
	s := sample.New(r.Topology, sample.Options{Fanouts: []int{0}, Form: r.Model.Form()})
	for _, shard := range shards {
		if edges > enoughEdges {
			break // it takes memory, and time, that is not for this
		}
		a := &act{shard: shard, times: make([]times, len(r.infos)*directions)}
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			a.vertices = append(a.vertices, v)
		}
		if err := s.Sample(ctx, &a.batch, 0, 0, a.vertices); err != nil {
			return fmt.Errorf("find the edges of shard %d: %w", shard, err)
		}
		a.block = &a.batch.Blocks[0]
		a.block.Transpose()
		edges += a.block.Entries()
		for _, v := range a.block.Vertices {
			a.rows = append(a.rows, int32(v%rows))
		}
		a.labels = make([]int32, len(a.vertices))
		r.Labels(a.labels, a.vertices[0])
		r.acts = append(r.acts, a)
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
	r.levels = make([]*level, len(r.infos))
	number := r.Device.Type().Bytes()
	levels := ring(func(cols int) *level { return &level{rows: zeros(int(rows), cols), back: zeros(int(rows), cols)} })
	for i, s := range r.infos {
		if i > 0 && s.Hops > 0 {
			r.levels[i] = levels(s.In, 2*int(rows)*s.In*number)
		}
	}
	r.pass = r.Model.NewPass(r.Device, r.space)
	r.pass.Weights, r.pass.Gradients, r.pass.Train = r.Weights, zeros(1, r.Model.Size()), true
	r.sum = room(bytes(r.pass.Gradients))
	return nil
}

// ring returns what gives memory of some width, each time another, until there is as much
// as is cold: then those again.
func ring[M any](one func(width int) M) func(width, bytes int) M {
	made, next, held := map[int][]M{}, map[int]int{}, map[int]int{}
	return func(width, bytes int) M {
		if len(made[width]) == 0 || held[width] < cold {
			made[width], held[width] = append(made[width], one(width)), held[width]+bytes
		}
		m := made[width][next[width]%len(made[width])]
		next[width]++
		return m
	}
}

func (r *rehearsal) close() {
	for _, a := range []tensor.Arena{r.space, r.kept} {
		if a != nil {
			a.Close()
		}
	}
}

// run has all shards go forward, and then all go back, as they do in an epoch, round after
// round. The first round takes its memory: what it took counts only where there is no time
// for another. Rounds go on for a while even where they are short, since a processor that
// has a share of its time may give it all at once.
func (r *rehearsal) run(ctx context.Context) error {
	var begin time.Time
	for range 2 { // the first takes the memory
		begin = time.Now()
		if _, _, err := r.forward(ctx, r.acts[0], 0); err != nil {
			return err
		}
	}
	// A round takes about four times as long for each shard.
	if took := 4 * fewest * time.Since(begin); took > 0 {
		r.acts = spread(r.acts, max(1, int(rehearsed/took)))
	}
	r.forget()
	begin = time.Now()
	for round := range rounds {
		if round == 1 {
			r.forget()
		}
		if err := r.round(ctx); err != nil {
			return err
		}
		if took := time.Since(begin); took > rehearsed || round > 2*fewest && took > rehearsed/4 {
			return nil
		}
	}
	return nil
}

// forget forgets all times.
func (r *rehearsal) forget() {
	for _, of := range r.timed() {
		*of = times{}
	}
}

// over says that what goes on beside computing is over.
func (r *rehearsal) over() bool { return !r.until.IsZero() && !time.Now().Before(r.until) }

// round has all shards go forward, and all go back, unless something is over meanwhile.
func (r *rehearsal) round(ctx context.Context) error {
	w := started()
	for _, l := range r.levels {
		if l != nil {
			r.Device.Zero(l.back) // so that what is added up in it stays finite
		}
	}
	r.note(&r.clears, w.lap())
	for _, a := range r.acts {
		if r.over() {
			return nil
		}
		if _, _, err := r.forward(ctx, a, 0); err != nil {
			return err
		}
	}
	for _, a := range slices.Backward(r.acts) {
		if r.over() {
			return nil
		}
		if err := r.backAgain(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// backAgain has a shard go forward again, and back.
func (r *rehearsal) backAgain(ctx context.Context, a *act) error {
	x, carry, err := r.forward(ctx, a, 1)
	if err != nil {
		return err
	}
	w := started()
	r.Device.Zero(r.pass.Gradients)
	beside := w.lap()
	dy, dcarry := r.space.Alloc(r.Device.Type(), x.Rows, x.Cols), tensor.Matrix{}
	if !carry.None() {
		dcarry = r.space.Alloc(r.Device.Type(), carry.Rows, carry.Cols)
		r.Device.Zero(dcarry)
	}
	r.Loss(dy, x, a.labels)
	for s := range slices.Backward(r.infos) {
		dy = r.back(a, s, dy, dcarry)
		r.note(&a.times[s*directions+2], w.lap())
	}
	read(r.Device, r.sum, r.pass.Gradients)
	r.note(&r.shards, beside+w.lap())
	return nil
}

// forward has a shard go through all layers: for the first time, or again.
func (r *rehearsal) forward(ctx context.Context, a *act, time int) (x, carry tensor.Matrix, err error) {
	if ctx.Err() != nil {
		return x, carry, context.Cause(ctx)
	}
	r.space.Reset()
	r.pass.Begin()
	w := started()
	for s := range r.infos {
		if x, err = r.layer(a, s, time == 0, x, carry); err != nil {
			return x, carry, err
		}
		if s == 0 && r.infos[s].CarryOut > 0 {
			carry = x
		}
		r.note(&a.times[s*directions+time], w.lap())
	}
	return x, carry, nil
}

// layer is one stage of the model. The second time, its own rows are where others see them.
func (r *rehearsal) layer(a *act, s int, first bool, x, carry tensor.Matrix) (tensor.Matrix, error) {
	var in nn.Input
	var block *sample.Block
	seen, vertices := tensor.Matrix{}, a.vertices
	if s > 0 {
		seen = r.pass.Enter(s, x, a.vertices)
	}
	if r.infos[s].Hops > 0 {
		block, vertices = a.block, a.block.Vertices
		if s > 0 {
			rows := r.levels[s].rows
			if first {
				own := rows.RowRange(min(int(a.rows[0]), rows.Rows-seen.Rows), seen.Rows)
				r.Device.Combine(own, 1, seen, 0, tensor.Matrix{})
			}
			seen = r.space.Alloc(r.Device.Type(), len(a.rows), r.infos[s].In)
			r.Device.Gather(seen, []tensor.Part{{X: rows}}, unsigned(a.rows))
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
		r.Device.ScatterAdd(r.levels[s].back, dseen, a.rows)
	}
	r.pass.Leave(s, dx)
	return dx
}
