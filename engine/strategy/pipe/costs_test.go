package pipe

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/timing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// What is counted of a graph is what the blocks of its shards have.
func TestCensus(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	for _, model := range []string{"gcn", "sage"} {
		j := w.start(t, newSetup(deep(model, 2), 1, 1, 6))
		c := census.New(w.firsts, w.topology, j.model.Form())
		for _, g := range j.nodes[0].grains {
			if c.Sources[g.shard] != g.block.Cols || c.Entries[g.shard] != g.block.Entries() {
				t.Errorf("%s: shard %d has %d sources and %d edges, and its block %d and %d", model, g.shard, c.Sources[g.shard], c.Entries[g.shard], g.block.Cols, g.block.Entries())
			}
		}
	}
}

// All layers are timed on the shards that are given, and weights stay as they are.
func TestTimeLayers(t *testing.T) {
	w := newWorld(t, 5, append(slices.Clone(sizes), 0), anywhere)
	for _, model := range []string{"gcn", "sage", "gcnii", "resgcn", "gat"} {
		for _, sparse := range []bool{false, true} {
			w.sparse = sparse
			s := newSetup(deep(model, 3), 1, 1, 7)
			s.device = func() tensor.Device { return cpu.New(1) }
			n := w.start(t, s).nodes[0]
			before := slices.Clone(n.weights.F32())
			c := census.New(w.firsts, w.topology, n.Model.Form())
			shards, _ := timing.Choose([]int{1, 3, 6}, c, n.Model, 0, 1<<30)
			took, err := timing.Layers(t.Context(), n.subject(), c, shards)
			if err != nil {
				t.Fatal(err)
			}
			nominal := costs.Nominal(n.Model.Stages(), c)
			for s, l := range took.Layers {
				if !(l.Forward > 0) || !(l.Backward > 0) || l.NominalForward != nominal.Forward[s][1]+nominal.Forward[s][3] || l.NominalBackward != nominal.Backward[s][1]+nominal.Backward[s][3] {
					t.Errorf("%s: layer %d: %+v", model, s, l)
				}
			}
			if !slices.Equal(before, n.weights.F32()) {
				t.Errorf("%s: weights have changed", model)
			}
		}
	}
	// A wide layer takes longer than a narrow one.
	n := w.start(t, newSetup(wide(), 1, 1, 7)).nodes[0]
	c := census.New(w.firsts, w.topology, n.Model.Form())
	took, err := timing.Layers(t.Context(), n.subject(), c, []int{0, 2})
	if err != nil {
		t.Fatal(err)
	}
	if of := took.Layers; of[1].Forward <= of[2].Forward {
		t.Errorf("a layer of 96x96 takes %v s, and one of 96x3 %v s", of[1].Forward, of[2].Forward)
	}
	empty, _ := timing.Choose([]int{6}, c, n.Model, 0, 1<<30)
	if none, err := timing.Layers(t.Context(), n.subject(), c, empty); err != nil || none.Layers[0] != (costs.LayerTime{}) {
		t.Errorf("without vertices: %+v, %v", none, err)
	}
}

func wide() nn.Spec {
	s := deep("gcn", 3)
	s.Hidden = 96
	return s
}

func layer(forward, backward, nominalForward, nominalBackward float64) costs.LayerTime {
	return costs.LayerTime{Forward: forward, Backward: backward, NominalForward: nominalForward, NominalBackward: nominalBackward}
}

// Each layer takes as many times its formula as on the shards that were timed; where
// clocks stand still, formulas are all there is.
func TestMeasuredCosts(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	m := w.model(t, deep("gcn", 2))
	c, infos := census.New(w.firsts, w.topology, m.Form()), m.Stages()
	nominal := costs.Nominal(infos, c)
	of := func(times float64) *costs.Timing {
		return &costs.Timing{Layers: []costs.LayerTime{layer(times, 2*times, 1, 1), layer(3*times, 4*times, 1, 1)}}
	}
	none := &costs.Timing{Layers: make([]costs.LayerTime, 2)}
	measured := costs.Measured([]*costs.Timing{of(5), none, of(15)}, infos, c)
	for s := range infos {
		for shard := range c.Sources {
			forward, backward := 10*float64(1+2*s)*nominal.Forward[s][shard], 10*float64(2+2*s)*nominal.Backward[s][shard]
			if got := measured.Forward[s][shard]; math.Abs(got-forward) > 1e-9*forward {
				t.Errorf("stage %d, shard %d: %v s forward, want %v", s, shard, got, forward)
			}
			if got := measured.Backward[s][shard]; math.Abs(got-backward) > 1e-9*backward {
				t.Errorf("stage %d, shard %d: %v s backward, want %v", s, shard, got, backward)
			}
		}
	}
	if !measured.Timed {
		t.Error("nothing was timed")
	}
	for _, still := range []*costs.Costs{costs.Measured([]*costs.Timing{of(0), none}, infos, c), costs.Measured([]*costs.Timing{none}, infos, c)} {
		if still.Timed || still.Forward[1][2] != nominal.Forward[1][2] {
			t.Errorf("%+v", still)
		}
	}
}

// All nodes use costs of what all have timed, and follow the first one's candidates.
func TestNodesAgreeOnCandidates(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	const nodes = 3
	net := loopback.New(nodes)
	work := peer.Work{Nodes: []string{"a", "b", "c"}}
	lists, facts := make([]arrange.Candidates, nodes), make([]*Facts, nodes)
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
		f := w.facts(t, deep("gcn", 4), nodes, asked...)
		facts[i] = f
		mine := &costs.Timing{Layers: slices.Repeat([]costs.LayerTime{layer(float64(i+1), 1, 1, 1)}, 4)}
		if f.Memory, err = costs.Rooms(t.Context(), exchanges[i], work.Nodes, uint64(i+7)<<20, nil); err != nil {
			return err
		}
		if f.Costs, err = costs.Share(t.Context(), exchanges[i], work.Nodes, mine, f.Model.Stages(), f.Census, nil); err != nil {
			return err
		}
		if lists[i], err = f.Candidates(t.Context(), 0); err != nil {
			return err
		}
		if i == 1 { // which rounds differently
			slices.Reverse(lists[i])
			lists[i][len(lists[i])-1].Cuts, lists[i][0].Fits = nil, false
		}
		return lists[i].Agree(t.Context(), arrange.ByTimes, exchanges[i], work.Nodes, arrange.Units(f.Model.Stages()), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, list := range lists {
		if !reflect.DeepEqual(list[:3], lists[0][:3]) || len(list) != len(lists[0]) {
			t.Errorf("node %d has %+v, and the first %+v", i, list, lists[0])
		}
		if got := facts[i].Costs.Forward[3][0] / costs.Nominal(facts[i].Model.Stages(), facts[i].Census).Forward[3][0]; math.Abs(got-2) > 1e-9 || !slices.Equal(facts[i].Memory, []uint64{7 << 20, 8 << 20, 9 << 20}) {
			t.Errorf("node %d uses %v times the formula, %v", i, got, facts[i].Memory)
		}
	}
}

// Malformed messages end the job with a sentence.
func TestMalformedTimings(t *testing.T) {
	if _, err := costs.ReadTiming(make([]byte, 99), 3); err == nil || !strings.Contains(err.Error(), "run the same version of hopmesh") {
		t.Error(err)
	}
	of := costs.Timing{Layers: make([]costs.LayerTime, 3)}
	of.Layers[1].Backward = -1
	b, err := of.Encode()
	if _, bad := costs.ReadTiming(b, 3); err != nil || bad == nil || !strings.Contains(bad.Error(), "reports -1 s") {
		t.Error(err, bad)
	}
}

// What other nodes send is read as what it is, or not at all.
func FuzzTimings(f *testing.F) {
	of := costs.Timing{Layers: slices.Repeat([]costs.LayerTime{layer(0.5, 1, 2, 3)}, 3)}
	b, err := of.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	of.Layers[2].Forward = math.NaN()
	b, err = of.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := costs.ReadTiming(b, 3)
		if err != nil {
			return
		}
		for _, l := range got.Layers {
			for _, x := range []float64{l.Forward, l.Backward, l.NominalForward, l.NominalBackward} {
				if !(x >= 0) || math.IsInf(x, 0) {
					t.Fatalf("%v seconds", x)
				}
			}
		}
		if again, err := got.Encode(); err != nil || !slices.Equal(again, b) {
			t.Fatalf("%v, %v, want %v", again, err, b)
		}
	})
}
