package pipe

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// What is counted of the parts of any node is what its worker makes.
func TestPartsAreAsWorkersMakeThem(t *testing.T) {
	near := func(from, to int) bool { return from/40 == to/40 || from%16 == 0 }
	for name, edges := range map[string]func(from, to int) bool{"anywhere": anywhere, "near": near} {
		w := newWorld(t, 4, slices.Repeat([]int{20}, 8), edges)
		for _, ways := range []int{1, 2, 4} {
			f := w.facts(t, deep("gcn", 3), ways, strategy.PipeSettings{Ways: ways})
			f.Settings.Strategy = strategy.Graph
			shape, err := f.shape(ways)
			if err != nil {
				t.Fatal(err)
			}
			s := newSetup(deep("gcn", 3), 1, ways, ways)
			j := w.start(t, s)
			split := 0
			for _, n := range j.nodes {
				var want []part
				for p := range n.ways[0].at {
					for i, g := range n.ways[0].at[p] {
						other := slices.ContainsFunc(n.ways[0].at[p], func(o *grain) bool { return o != g && o.shard == g.shard })
						want = append(want, part{position: p, shard: g.shard, inner: i < n.ways[0].inner[p], split: other, vertices: len(g.vertices), sources: len(g.rows), entries: g.block.Entries()})
						if other {
							split++
						}
					}
				}
				got := slices.Clone(f.partsOf(shape)[n.ways[0].number])
				for i := range got {
					got[i].inner = got[i].inner && ways > 1
				}
				for i := range want {
					want[i].inner = want[i].inner && ways > 1
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %d ways: node's way %d is counted as %+v, and made as %+v", name, ways, n.ways[0].number, got, want)
				}
			}
			if name == "near" && ways > 1 && split == 0 {
				t.Errorf("%d ways: no shard is in two parts: the test shows nothing", ways)
			}
		}
	}
}

// A counting device takes a millisecond for each edge and each row that goes along edges.
type counting struct{ tensor.Device }

func (d counting) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	time.Sleep(time.Duration(len(g.Indices)+g.Rows) * time.Millisecond)
	d.Device.Aggregate(y, g, values, x, how, add, e)
}

func (d counting) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	time.Sleep(time.Duration(len(g.Indices)+g.Rows) * time.Millisecond)
	d.Device.AggregateBack(dx, g, values, dy, how, add)
}

// What is predicted that ways wait for rows of each other, beside what hides it, is what
// they wait: nothing, where rows come while a way computes what sees none of them.
func TestWaysWaitAsPredicted(t *testing.T) {
	spec := deep("gcn", 4)
	w := newWorld(t, 1, []int{12, 12, 12, 12}, neighbours)
	took := func(delay time.Duration) (epoch time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(spec, 1, 2, 2)
			s.Recompute = false
			s.device = func() tensor.Device { return counting{reference.New()} }
			j := w.start(t, s)
			j.net.Delay = delay
			begin := time.Now()
			j.epoch(t, 1)
			epoch = time.Since(begin) - atEnd*delay
		})
		return epoch
	}
	predicted := func(delay time.Duration) (hides, waits float64) {
		f := w.facts(t, spec, 2, strategy.PipeSettings{Ways: 2})
		f.Settings.Strategy, f.Network = strategy.Graph, Network{Bandwidth: math.Inf(1), RoundTrip: delay.Seconds()}
		infos := f.Model.Stages()
		f.Costs = newCosts(len(infos), len(f.Census.Sources))
		for s := range infos {
			for shard := range f.Census.Sources {
				seconds := float64(infos[s].Hops*(f.Census.Entries[shard]+f.Census.vertices(shard))) * 1e-3
				f.Costs.Forward[s][shard], f.Costs.Backward[s][shard] = seconds, seconds
			}
		}
		shape, err := f.shape(2)
		if err != nil {
			t.Fatal(err)
		}
		d := f.draft(1, shape, NewMirrors(shape, w.topology), newLayers(), false)
		p := d.predict()
		compute, _ := d.layer(0, 1, 0, forwards)
		return d.hides[0] * compute, p.Halo
	}
	hidden, _ := predicted(0)
	still := took(0)
	for _, times := range []float64{0.5, 1, 2, 5} {
		delay := time.Duration(times * hidden * float64(time.Second))
		_, want := predicted(delay)
		const trips = 2 * 3 // of the layers after the first, there and back
		if got := (took(delay) - still).Seconds(); math.Abs(got-want) > 0.1*trips*delay.Seconds() || times > 1 && want == 0 {
			t.Errorf("where a trip takes %v times what is hidden, %v, ways wait for %v s, and %v s are predicted", times, delay, got, want)
		}
	}
}
