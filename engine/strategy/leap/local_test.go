package leap_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A plainModel is one of those that tour, as the test has it.
type plainModel struct {
	w, m, v []float64
	updates int
}

func (p *plainModel) update(o nn.OptimizerSpec, g []float64, rate float64) {
	p.updates++
	c1, c2 := 1-math.Pow(0.9, float64(p.updates)), 1-math.Pow(0.999, float64(p.updates))
	for i, g := range g {
		old := p.w[i]
		if o.Kind != "adamw" {
			g += o.WeightDecay * old
		}
		if o.Kind == "sgd" {
			p.m[i] = o.Momentum*p.m[i] + g
			p.w[i] -= rate * p.m[i]
			continue
		}
		p.m[i] = 0.9*p.m[i] + 0.1*g
		p.v[i] = 0.999*p.v[i] + 0.001*g*g
		p.w[i] -= rate * (p.m[i] / c1) / (math.Sqrt(p.v[i]/c2) + 1e-8)
		if o.Kind == "adamw" {
			p.w[i] -= rate * o.WeightDecay * old
		}
	}
}

// A simulation trains N models in one process, without any messages.
type simulation struct {
	t        *testing.T
	one      *train.Learner // that knows gradients of groups
	of       func(v uint32) int
	deal     func(batch []uint32) // if not nil, is told the batch before of is asked for its roots
	nodes    int
	slots    int
	every    int
	models   []plainModel
	took     int // models that were moved between nodes
	empty    int // groups without roots
	relocate int // of took: those between steps
	at       []int
}

func simulate(t *testing.T, r recipe.Recipe, shards []*graph.Shard, owners []int, nodes, slots, every int) *simulation {
	r.Sharing = strategy.Settings{}
	s := &simulation{t: t, one: traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1})), nodes: nodes, slots: slots, every: every}
	s.of = func(v uint32) int {
		for i, shard := range shards {
			if v >= shard.First && v < shard.First+uint32(shard.Vertices) {
				return owners[i]
			}
		}
		panic("no such vertex")
	}
	for _, w := range traintest.Initial(t, s.one.Model, r.Seed) {
		if len(s.models) == 0 {
			s.models = make([]plainModel, nodes)
		}
		for d := range s.models {
			p := &s.models[d]
			p.w, p.m, p.v = append(p.w, float64(w)), append(p.m, 0), append(p.v, 0)
		}
	}
	return s
}

// groups are the roots of each node, slot by slot, and which columns are kept, as the
// sheet has it.
func (s *simulation) groups(batch []uint32) (kept []int, roots [][][]uint32) {
	n := s.nodes
	if s.deal != nil {
		s.deal(batch)
	}
	group := func(model, node int) (of []uint32) {
		for _, v := range batch[len(batch)*model/n : len(batch)*(model+1)/n] {
			if s.of(v) == node {
				of = append(of, v)
			}
		}
		return of
	}
	for c := range n {
		kept = append(kept, c)
	}
	for len(kept) > s.slots {
		drop, least := 0, len(batch)+1
		for i, c := range kept {
			for m := range n {
				if size := len(group((m+c)%n, m)); size < least {
					drop, least = i, size
				}
			}
		}
		kept = slices.Delete(kept, drop, drop+1)
	}
	for m := range n {
		var pool []uint32
		mine, total := make([][]uint32, len(kept)), 0
		for d := range n {
			g := group(d, m)
			total += len(g)
			if j := slices.Index(kept, (d-m+n)%n); j >= 0 {
				mine[j] = g
			} else {
				pool = append(pool, g...)
			}
		}
		for d := range n {
			j := slices.Index(kept, (d-m+n)%n)
			for j >= 0 && len(pool) > 0 && len(mine[j]) < total/s.slots+1 {
				mine[j], pool = append(mine[j], pool[0]), pool[1:]
			}
		}
		roots = append(roots, mine)
	}
	return kept, roots
}

// gradient is that of the summed loss of some roots.
func (s *simulation) gradient(w []float64, epoch, step int, roots []uint32) (loss float64, g []float64) {
	tr := s.one
	tr.Run.Device.Write(tr.Weights, w)
	slot := tr.Run.Batches.Slots[0]
	slot.Step, slot.Roots = step, roots
	if err := tr.Run.Method.Prepare(s.t.Context(), tr.Run.Batches.Workers[0], slot, epoch); err != nil {
		s.t.Fatal(err)
	}
	tr.At.Epoch = epoch
	tr.Run.Device.Zero(tr.Gradients)
	loss, wrong := traintest.BatchedOf(tr).Learn(tr, slot, &slot.Groups[0])
	if wrong != "" {
		s.t.Fatal(wrong)
	}
	g = traintest.GradientOf(tr)
	for i := range g {
		g[i] *= float64(len(roots))
	}
	return loss, g
}

// Epoch returns the sum of all losses.
func (s *simulation) Epoch(epoch int, rate float64) (losses float64) {
	b := s.one.Run.Batches
	b.Shuffle(epoch)
	for step := range b.Steps {
		batch := slices.Clone(b.Roots(step))
		kept, roots := s.groups(batch)
		for j, c := range kept {
			now := make([]int, s.nodes)
			for m := range s.nodes {
				d := (m + c) % s.nodes
				now[d] = m
				if s.at != nil && s.at[d] != m {
					s.took++
					if j == 0 {
						s.relocate++
					}
				}
				if len(roots[m][j]) == 0 {
					s.empty++
					continue
				}
				loss, g := s.gradient(s.models[d].w, epoch, step, roots[m][j])
				losses += loss
				for i := range g {
					g[i] /= float64(len(batch)) / float64(s.nodes)
				}
				s.models[d].update(s.one.Recipe.Optimizer, g, rate)
			}
			s.at = now
		}
		if (step+1)%s.every == 0 || step+1 == b.Steps {
			s.average()
		}
	}
	return losses
}

func (s *simulation) average() {
	s.at = nil // all are everywhere
	n := float64(s.nodes)
	updates := 0.0
	for _, p := range s.models {
		updates += float64(p.updates) / n
	}
	first := s.models[0]
	for i := range first.w {
		var w, m, v float64
		for _, p := range s.models {
			w, m, v = w+p.w[i]/n, m+p.m[i]/n, v+p.v[i]/n
		}
		for _, p := range s.models {
			p.w[i], p.m[i], p.v[i] = w, m, v
		}
	}
	for d := range s.models {
		s.models[d].updates = int(math.Round(updates))
	}
}

// Models that update themselves are what N models in one process are, with each
// optimizer, wherever roots are and however slots are merged; and what travels is what
// must.
func TestLocalUpdatesAreThoseOfOneProcess(t *testing.T) {
	shards := traintest.Tiny(t, 150, 6)
	moved, relocated, empty, turn := 0, 0, 0, 0
	for _, optimizer := range []nn.OptimizerSpec{
		{Kind: "adam", WeightDecay: 5e-4}, {Kind: "adamw", WeightDecay: 0.01}, {Kind: "sgd", WeightDecay: 5e-4, Momentum: 0.9}, {Kind: "sgd"},
	} {
		for _, nodes := range []int{2, 3, 5} {
			for slots := 1; slots <= nodes; slots++ {
				every := []int{2, 3, 1000}[turn%3]
				turn++
				r := traintest.ExactRecipe("sage")
				r.Optimizer, r.Rate, r.EvalEvery, r.Epochs = optimizer, 0.03, 1<<20, 1<<20
				name := fmt.Sprintf("%+v on %d nodes in %d slots, %d steps", optimizer, nodes, slots, every)
				m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
				want := simulate(t, r, shards, m.Owners, nodes, slots, every)
				r.Sharing = traintest.Updating(fmt.Sprint(slots), every)
				r.Sharing = r.Sharing.With("topology=" + []string{"replicated", "sharded"}[slots%2])
				if nodes == 3 {
					r.Sharing = r.Sharing.With("leap.pregather=off")
				}
				if nodes == 3 && slots == 2 {
					r.Sharing = r.Sharing.With("leap.dedup=off")
				}
				all := m.Start(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
				for epoch := 1; epoch < 3; epoch++ {
					before := want.took
					losses := want.Epoch(epoch, r.Rate)
					if err := m.Together(t, func(ctx context.Context, node int) error { return all[node].Run.Epoch(ctx) }); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					for node, tr := range all {
						sameModel(t, fmt.Sprintf("%s, epoch %d, node %d", name, epoch, node), tr, &want.models[0])
						e := tr.At.Last
						if mean := losses / float64(len(tr.Run.Data.Training)); math.Abs(e.Loss-mean) > 1e-10*mean {
							t.Errorf("%s: the loss is %v in place of %v", name, e.Loss, mean)
						}
						hops := uint64(want.took - before)
						frame := peer.QueryFraming + peer.AnswerFraming + batched.HeadSize + 8*tr.Model.Size()*(1+len(tr.Optimizer.Moments()))
						if got := e.Sent; got.Requests[peer.Model] != hops || got.Bytes[peer.Model] != hops*uint64(frame) || hops > uint64(slots*nodes*e.Steps) || e.Slots != slots {
							t.Errorf("%s: %d hops in %d bytes, want %d of %d bytes, in %d slots", name, got.Requests[peer.Model], got.Bytes[peer.Model], hops, frame, e.Slots)
						}
					}
				}
				moved, relocated, empty = moved+want.took, relocated+want.relocate, empty+want.empty
				if steps := all[0].Run.Batches.Steps; steps < 4 || len(all[0].Run.Data.Training)%r.Batch == 0 {
					t.Fatalf("%d steps, and the last batch is whole: little is shown", steps)
				}
			}
		}
	}
	if relocated == 0 || moved <= relocated || empty == 0 {
		t.Errorf("%d models moved, %d of them between steps, and %d groups were empty: little is shown", moved, relocated, empty)
	}
}

// sameModel compares what a node has with a model of the simulation.
func sameModel(t *testing.T, name string, tr *train.Learner, want *plainModel) {
	t.Helper()
	rows := [][]float64{want.w, want.m, want.v}
	for i, m := range traintest.LocalOf(tr).States {
		got := make([]float64, m.Cols)
		tr.Run.Device.Read(got, m)
		if d := traintest.Distance(got, rows[i]); !(d <= 1e-10) {
			t.Fatalf("%s: row %d is %.3g off", name, i, d)
		}
	}
	if got := tr.Optimizer.Steps(); got != uint64(want.updates) {
		t.Fatalf("%s: %d updates, want %d", name, got, want.updates)
	}
}
