package grappa

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A step is what groups make of a batch, in one super-epoch.
type step struct {
	of       *sample.Topology
	firsts   []uint32
	schedule *Schedule
	o        Settings
	seed     uint64
}

func newStep(t testing.TB, shards []*graph.Shard, o Settings, seed uint64) *step {
	t.Helper()
	return &step{topology(t, shards), firstsOf(shards), schedule(t, len(shards), o, seed), o, seed}
}

// gradient is the mean over the batch, as nodes would add it up.
func (p *step) gradient(t testing.TB, m *machine, batch []uint32, super int, fanouts []int) []float64 {
	t.Helper()
	k := NewCorrector(&p.o, p.schedule)
	sampler := sample.New(p.of, sample.Options{Fanouts: fanouts, Form: m.model.Form(), Seed: p.seed})
	total, sum := make([]float64, m.model.Size()), 0.0
	for g := range p.schedule.Groups() {
		c := contextOf(t, p.of, p.firsts, p.schedule, p.o, g, super, p.seed)
		sampler.Within(c.Topology)
		var roots []uint32
		for _, v := range batch {
			if c.Root(v) {
				roots = append(roots, v)
			}
		}
		add(total, 1/float64(len(batch)), m.gradient(t, sampler, roots, func(blocks []sample.Block) []float64 {
			for _, v := range blocks[0].Vertices {
				if !c.Has(v) {
					t.Fatalf("group %d reads vertex %d, which is not there", g, v)
				}
			}
			w := k.Weigh(nil, c, batch, roots, blocks)
			sum += Sum(w, len(roots))
			return w
		}))
	}
	scale := k.Scale(len(batch), sum)
	for i := range total {
		total[i] *= scale
	}
	return total
}

// alone is what one machine makes of it.
func alone(t testing.TB, of *sample.Topology, m *machine, batch []uint32, fanouts []int, seed uint64) []float64 {
	t.Helper()
	s := sample.New(of, sample.Options{Fanouts: fanouts, Form: m.model.Form(), Seed: seed})
	g := make([]float64, m.model.Size())
	add(g, 1/float64(len(batch)), m.gradient(t, s, batch, even))
	return g
}

func models() map[string]nn.Spec {
	all := map[string]nn.Spec{}
	for _, name := range []string{"gcn", "sage", "gat", "gin"} {
		all[name] = nn.Defaults(name)
	}
	mean := nn.Defaults("sage")
	mean.Aggregator = "gcn"
	all["sage, gcn"] = mean
	return all
}

// One group is one machine, and so are any, once each sees as many hops as the model
// has layers; a hop less is not enough.
func TestAllHopsOfHaloAreOneMachine(t *testing.T) {
	shards := cut(wild(60, 300, 9), 5, 20, 31, 31, 45, 60)
	batch := []uint32{2, 7, 8, 30, 31, 44, 46, 59, 22}
	for name, spec := range models() {
		m := newMachine(t, spec, 60, false, 3)
		for _, fanouts := range [][]int{{0, 0}, {3, 2}} {
			for _, c := range []struct {
				o    Settings
				same bool
			}{
				{given("groups=1"), true},
				{given("groups=1", "loader=strict", "correction=node"), true},
				{given("groups=3", "depth=2"), true},
				{given("groups=6", "depth=2", "sweep=off", "correction=self-normalised"), true},
				{given("groups=3", "sweep=off"), false},
				{given("groups=3", "sweep=off", "loader=strict"), false},
			} {
				p := newStep(t, shards, c.o, 3)
				want := alone(t, p.of, m, batch, fanouts, 3)
				d := off(p.gradient(t, m, batch, 1, fanouts), want)
				if (d < 1e-10) != c.same || math.IsNaN(d) {
					t.Errorf("%s, fan-outs %v, %+v: the gradient is %.3g off", name, fanouts, c.o, d)
				}
			}
		}
	}
}

// Groups with nine roots, one and none add up to the exact mean; a mean of each group's
// is another, unless all have as many.
func TestGroupsCountByTheirRoots(t *testing.T) {
	shards := cut(wild(60, 300, 9), 20, 40, 60)
	m := newMachine(t, nn.Defaults("sage"), 60, false, 4)
	uneven, same := []uint32{0, 1, 2, 3, 7, 9, 11, 13, 19, 25}, []uint32{0, 1, 21, 22, 50, 59}
	for name, c := range map[string]struct {
		batch []uint32
		o     Settings
		exact bool
	}{
		"uneven":           {uneven, given("depth=2"), true},
		"uneven by groups": {uneven, given("depth=2", "loss=groups"), false},
		"same":             {same, given("depth=2"), true},
		"same by groups":   {same, given("depth=2", "loss=groups"), true},
	} {
		c.o.Groups = 3
		p := newStep(t, shards, c.o, 3)
		d := off(p.gradient(t, m, c.batch, 0, []int{0, 0}), alone(t, p.of, m, c.batch, []int{0, 0}, 3))
		if (d < 1e-12) != c.exact || math.IsNaN(d) {
			t.Errorf("%s: the gradient is %.3g off", name, d)
		}
	}
}

// What shrinks to no correction is none, bit for bit; without it gradients are others.
func TestShrunkToNothingIsNone(t *testing.T) {
	shards := cut(wild(60, 300, 9), 5, 20, 31, 31, 45, 60)
	batch := []uint32{2, 7, 8, 30, 31, 44, 46, 59, 22}
	m := newMachine(t, nn.Defaults("sage"), 60, false, 5)
	with := func(o Settings) []float64 {
		o.Groups, o.Loader = 3, Strict
		return newStep(t, shards, o, 3).gradient(t, m, batch, 0, []int{0, 0})
	}
	none := with(given("correction=none"))
	for _, correction := range []string{CorrectBatch, CorrectNode, CorrectSelf} {
		if d := off(with(given("correction="+correction, "shrink=1")), none); d != 0 {
			t.Errorf("%s, shrunk to nothing, is %.3g off", correction, d)
		}
		if d := off(with(given("correction="+correction)), none); d < 1e-3 {
			t.Errorf("%s changes nothing: %.3g", correction, d)
		}
	}
	for _, correction := range []string{CorrectMessage, CorrectReleased} {
		if d := off(with(given("correction="+correction)), none); d < 1e-3 {
			t.Errorf("%s changes nothing: %.3g", correction, d)
		}
	}
	for _, loader := range []string{Halo, HaloSampled} { // where all is seen nothing is corrected
		o := given("groups=3", "correction=none")
		none := newStep(t, shards, o, 3).gradient(t, m, batch, 0, []int{0, 0})
		for _, correction := range []string{CorrectBatch, CorrectNode, CorrectSelf, CorrectMessage} {
			o := given("groups=3", "correction="+correction, "loader="+loader)
			if loader == HaloSampled {
				o.Cap = 1000
			}
			if d := off(newStep(t, shards, o, 3).gradient(t, m, batch, 0, []int{0, 0}), none); d != 0 {
				t.Errorf("%s in %q is %.3g off", correction, loader, d)
			}
		}
	}
}

// A sampled halo stands for the whole one: where the loss is linear the gradient is that
// of the whole on average, with any weights of losses: they take nothing off for what
// messages have made up for.
func TestASampledHaloStandsForTheWhole(t *testing.T) {
	shards := cut(wild(60, 500, 9), 20, 40, 60)
	r := rand.New(rand.NewPCG(6, 6))
	var batch []uint32
	for _, v := range r.Perm(60)[:24] {
		batch = append(batch, uint32(v))
	}
	for name, spec := range models() {
		if name == "gat" || name == "gin" {
			continue // neither is linear
		}
		spec.Layers = 1
		m := newMachine(t, spec, 60, true, 5)
		for _, fanouts := range [][]int{{0}, {3}} {
			if fanouts[0] > 0 && name == "sage, gcn" {
				continue // a plain mean of the vertex and of what is drawn counts the vertex too much
			}
			whole := newStep(t, shards, given("groups=3", "sweep=off", "correction=none"), 1)
			want := make([]float64, m.model.Size())
			const seeds = 400
			var mean, square []float64
			mean, square = make([]float64, m.model.Size()), make([]float64, m.model.Size())
			for seed := range uint64(seeds) {
				sampled := *whole
				sampled.o.Loader, sampled.o.Cap, sampled.seed = HaloSampled, 9, 100+seed
				sampled.o.Correction = []string{CorrectNone, CorrectBatch, CorrectNode, CorrectSelf}[seed%4]
				g := sampled.gradient(t, m, batch, 0, fanouts)
				whole.seed = 100 + seed
				add(want, 1.0/seeds, whole.gradient(t, m, batch, 0, fanouts))
				for i, x := range g {
					mean[i] += x / seeds
					square[i] += x * x / seeds
				}
			}
			for i := range want {
				deviation := math.Sqrt(max(0, square[i]-mean[i]*mean[i]) / seeds)
				if math.Abs(mean[i]-want[i]) > 4.5*deviation+1e-6 {
					t.Errorf("%s, fan-outs %v: number %d of the gradient is %v on average, and %v of the whole halo; a deviation is %v", name, fanouts, i, mean[i], want[i], deviation)
				}
			}
		}
	}
}
