package pipe

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/loopback"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// What is counted of a graph is what the blocks of its shards have.
func TestCensus(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	for _, model := range []string{"gcn", "sage"} {
		j := w.start(t, newSetup(deep(model, 2), 1, 1, 6))
		c := NewCensus(w.firsts, w.topology, j.model.Form())
		for _, g := range j.nodes[0].grains {
			if c.Sources[g.shard] != g.block.Cols || c.Entries[g.shard] != g.block.Entries() {
				t.Errorf("%s: shard %d has %d sources and %d edges, and its block %d and %d", model, g.shard, c.Sources[g.shard], c.Entries[g.shard], g.block.Cols, g.block.Entries())
			}
		}
	}
}

// A rehearsal times all layers on all shards that it is given, and leaves weights alone.
func TestRehearsals(t *testing.T) {
	w := newWorld(t, 5, append(slices.Clone(sizes), 0), anywhere)
	for _, model := range []string{"gcn", "sage", "gcnii", "resgcn", "gat"} {
		for _, sparse := range []bool{false, true} {
			w.sparse = sparse
			s := newSetup(deep(model, 3), 1, 1, 7)
			s.device = func() tensor.Device { return cpu.New(1) }
			n := w.start(t, s).nodes[0]
			before := slices.Clone(n.weights.F32())
			timing, err := Rehearse(t.Context(), *n.Task, w.firsts, []int{1, 3, 6})
			if err != nil {
				t.Fatal(err)
			}
			infos := n.Model.Stages()
			if !slices.Equal(timing.Shards, []uint32{1, 3}) || len(timing.Times) != 2*len(infos)*directions {
				t.Fatalf("%s: of the shards %v, %d times", model, timing.Shards, len(timing.Times))
			}
			for i, seconds := range append(timing.Times, timing.Rest.Row, timing.Rest.Sum, timing.Rest.Step, timing.Rest.Shard) {
				if !(seconds > 0) && (len(infos) > 3 || i > len(timing.Times)) {
					t.Errorf("%s: time %d is %v", model, i, seconds)
				}
			}
			if !slices.Equal(before, n.weights.F32()) {
				t.Errorf("%s: weights have changed", model)
			}
		}
	}
	// Neighbours may lie where there is room for a shard and no more.
	defer func(n int) { mostRows = n }(mostRows)
	mostRows = 1
	// The seconds of a dear layer are dear.
	n := w.start(t, newSetup(wide(), 1, 1, 7)).nodes[0]
	timing, err := Rehearse(t.Context(), *n.Task, w.firsts, []int{0, 2})
	if err != nil {
		t.Fatal(err)
	}
	if of := timing.Times; of[0] <= 0 || of[directions] <= of[2*directions] {
		t.Errorf("a layer of 96x96 takes %v s, and one of 96x3 %v s", of[directions], of[2*directions])
	}
}

func wide() nn.Spec {
	s := deep("gcn", 3)
	s.Hidden = 96
	return s
}

// What nobody has timed takes as much longer than its formula as what was; where clocks
// stand still, formulas are all there is.
func TestMeasuredCosts(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	m := w.model(t, deep("gcn", 2))
	c, infos := NewCensus(w.firsts, w.topology, m.Form()), m.Stages()
	nominal := Nominal(infos, c, m.Size())
	of := func(shard uint32, times float64) *Timing {
		t := &Timing{Shards: []uint32{shard}, Rest: rest{Shard: times, Row: 1, Sum: 2, Step: 3}}
		for s := range infos {
			for _, table := range [][][]float64{nominal.Forward, nominal.Again, nominal.Backward} {
				t.Times = append(t.Times, times*table[s][shard]*float64(s+1))
			}
		}
		return t
	}
	// The second is of a shard that is known already.
	costs := Measured([]*Timing{of(1, 10), {}, of(1, 99), of(4, 10)}, infos, c, m.Size())
	for s := range infos {
		for shard := range c.Sources {
			for d, tables := range [][2][][]float64{{costs.Forward, nominal.Forward}, {costs.Again, nominal.Again}, {costs.Backward, nominal.Backward}} {
				got, want := tables[0][s][shard], 10*float64(s+1)*tables[1][s][shard]
				if math.Abs(got-want) > 1e-9*want {
					t.Errorf("stage %d, shard %d, direction %d: %v s, want %v", s, shard, d, got, want)
				}
			}
		}
	}
	if !costs.Timed || math.Abs(costs.Shard-119./3) > 1e-9 || costs.Row != 1 || costs.Sum != 2 || costs.Step != 3 {
		t.Errorf("%+v", costs)
	}
	if still := Measured([]*Timing{of(1, 0), {}}, infos, c, m.Size()); still.Timed || still.Forward[1][2] != nominal.Forward[1][2] || still.Row != nominal.Row {
		t.Errorf("%+v", still)
	}
}

// All nodes follow the first one's plan, and come to costs of what all have timed.
func TestNodesAgreeOnAPlan(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	const nodes = 3
	net := loopback.New(nodes)
	work := strategy.Work{Nodes: []string{"a", "b", "c"}}
	plans, facts := make([]*Plan, nodes), make([]*Facts, nodes)
	j := &job{nodes: make([]*node, nodes)}
	exchanges := make([]*exchange.Exchange, nodes)
	for i := range nodes {
		work.Self = i
		exchanges[i] = exchange.New(net.Node(i), work)
		net.Node(i).Open()
		j.nodes[i] = &node{}
	}
	at := func(n *node) int { return slices.Index(j.nodes, n) }
	err := j.each(func(n *node) (err error) {
		i := at(n)
		f := w.facts(t, deep("gcn", 4), nodes, asked)
		facts[i] = f
		mine := &Timing{Shards: []uint32{uint32(i)}, Times: slices.Repeat([]float64{float64(i + 1)}, 4*directions), Rest: rest{Memory: uint64(i + 7)}}
		if err = f.Hear(t.Context(), exchanges[i], work.Nodes, mine, nil); err != nil {
			return err
		}
		if plans[i], err = f.Choose(t.Context(), 0); err != nil {
			return err
		}
		if i == 1 { // which rounds differently
			plans[i].Stages, plans[i].Ways, plans[i].Cuts = 99, 99, []int{0, 4}
		}
		return plans[i].Agree(t.Context(), exchanges[i], work.Nodes, f, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range plans {
		if p.Stages != plans[0].Stages || p.Ways != plans[0].Ways || !slices.Equal(p.Cuts, plans[0].Cuts) || p.Tried[0].Stages != p.Stages || p.Tried[0].Ways != p.Ways {
			t.Errorf("node %d plans %+v, and the first %+v", i, p, plans[0])
		}
		if got := facts[i].Costs.Forward[3]; !slices.Equal(got[:3], []float64{1, 2, 3}) || !slices.Equal(facts[i].Memory, []uint64{7, 8, 9}) {
			t.Errorf("node %d has heard of %v, %v", i, got, facts[i].Memory)
		}
	}
}

// What other nodes tell is read as what it is, or not at all.
func FuzzTimings(f *testing.F) {
	of := Timing{Shards: []uint32{2, 0}, Times: slices.Repeat([]float64{0.5}, 2*3*directions), Rest: rest{1, 2, 3, 4, 5, burden{6, 7}}}
	b, err := of.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	of.Times[4] = math.NaN()
	b, err = of.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readTiming(b, 3, 4)
		if err != nil {
			return
		}
		for _, shard := range got.Shards {
			if shard >= 4 {
				t.Fatalf("shard %d", shard)
			}
		}
		for _, x := range append(got.Times, got.Rest.Row, got.Rest.Sum, got.Rest.Step, got.Rest.Shard) {
			if !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%v seconds", x)
			}
		}
		if again, err := got.encode(); err != nil || !slices.Equal(again, b) {
			t.Fatalf("%v, %v, want %v", again, err, b)
		}
	})
}

func FuzzPlans(f *testing.F) {
	f.Add((&Plan{Stages: 2, Ways: 3, Cuts: []int{0, 2, 5}}).encode())
	f.Add((&Plan{Stages: 2, Ways: 3, Cuts: []int{0, 5, 5}}).encode())
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		stages, ways, cuts, err := readPlan(b, 5)
		if err != nil {
			if !strings.Contains(err.Error(), "run the same version") {
				t.Fatal(err)
			}
			return
		}
		if ways < 1 || len(cuts) != stages+1 || cuts[0] != 0 || cuts[stages] != 5 || !slices.IsSorted(cuts) {
			t.Fatalf("%d stages of %d ways: %v", stages, ways, cuts)
		}
		if again := (&Plan{Stages: stages, Ways: ways, Cuts: cuts}).encode(); !slices.Equal(again, b) {
			t.Fatalf("%v, want %v", again, b)
		}
	})
}

// A plan that this node has not looked at, and what can't be read, ends the job with a
// sentence.
func TestPlansThatAreNone(t *testing.T) {
	if _, _, _, err := readPlan(nil, 3); err == nil {
		t.Error("nothing is a plan")
	}
	if _, err := readTiming(make([]byte, 99), 3, 4); err == nil || !strings.Contains(err.Error(), "run the same version of hopmesh") {
		t.Error(err)
	}
	of := Timing{Shards: []uint32{9}, Times: make([]float64, 3*directions)}
	b, err := of.encode()
	if _, bad := readTiming(b, 3, 4); err != nil || bad == nil || !strings.Contains(bad.Error(), "has timed shard 9 of 4") {
		t.Error(err, bad)
	}
	of.Shards[0], of.Times[0] = 0, -1
	b, err = of.encode()
	if _, bad := readTiming(b, 3, 4); err != nil || bad == nil || !strings.Contains(bad.Error(), "takes -1 s") {
		t.Error(err, bad)
	}
}

// A processor that stands still for a while, as one does of which there is a share, does so
// in some layer: what those that are about as long take has it in the sum, and none of them
// by itself.
func TestStandsAreOfLayersAsLong(t *testing.T) {
	of := func(all ...float64) times { return times{all: all} }
	r := &rehearsal{shards: of(1, 1, 1), clears: of(1, 1, 1), acts: []*act{{times: []times{of(2, 2, 7), of(3, 3, 3)}}, {times: []times{of(9, 4, 4), of(1, 1, 1)}}}}
	// What is about as long as something that stood still for five seconds is taken for
	// longer, too; what is shorter or longer is not.
	r.settle()
	for i, want := range []float64{1, 1, 2 * 20. / 15, 3 * 20. / 15, 4 * 17. / 12, 1} {
		if got := r.timed()[i].alone; math.Abs(got-want) > 1e-9 {
			t.Errorf("what takes the %d. time takes %v s, want %v", i, got, want)
		}
	}
	still := &rehearsal{acts: []*act{{times: []times{of(0, 0)}}}}
	if still.settle(); still.acts[0].times[0].alone != 0 {
		t.Errorf("where a clock stands still, a layer takes %v s", still.acts[0].times[0].alone)
	}
}
