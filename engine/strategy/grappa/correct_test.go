package grappa

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// covered is a graph of two groups, of vertices 0 to 4 and 5 to 8, in which the first
// see of their neighbours all of one, none of two, one of three beside themselves, half
// of four; and 4 has none.
func covered(t testing.TB, o Settings) (*Context, *Schedule) {
	t.Helper()
	edges := []edge{{1, 0}, {5, 1}, {6, 1}, {2, 2}, {0, 2}, {7, 2}, {8, 2}, {0, 3}, {1, 3}, {6, 3}, {7, 3}, {0, 5}, {1, 5}}
	shards := cut(edges, 5, 9)
	o.Groups, o.Sweep = 2, "off"
	s := schedule(t, 2, o, 1)
	return contextOf(t, topology(t, shards), firstsOf(shards), s, o, 0, 0, 1), s
}

// The share of neighbours that are seen is of edges that are not a vertex's own to
// itself, and 1 where there are none.
func TestCoverage(t *testing.T) {
	strict, _ := covered(t, given("loader=strict"))
	halo, _ := covered(t, given())
	for v, want := range [][2]int{{1, 1}, {0, 2}, {1, 3}, {2, 4}, {0, 0}} {
		if a, d, seen := strict.Coverage(uint32(v)); a != want[0] || d != want[1] || !seen {
			t.Errorf("vertex %d sees %d of %d, row %v, and should %v", v, a, d, seen, want)
		}
		if a, d, seen := halo.Coverage(uint32(v)); a != want[1] || d != want[1] || !seen {
			t.Errorf("with a halo vertex %d sees %d of %d, row %v", v, a, d, seen)
		}
	}
	if _, _, seen := halo.Coverage(7); seen {
		t.Error("the row of a vertex of the halo is seen")
	}
}

// weights are those of all roots of the first group, alone in a batch.
func weights(t testing.TB, o Settings, batch []uint32, blocks ...sample.Block) []float64 {
	t.Helper()
	c, s := covered(t, o)
	return NewCorrector(&o, s).Weigh(nil, c, batch, []uint32{0, 1, 2, 3, 4}, blocks)
}

func TestWeights(t *testing.T) {
	batch := []uint32{8, 3, 1, 5, 4, 0, 2}
	third := 1.0 / 3
	mean := (1 + 0 + third + 0.5 + 1) / 5
	released := (0.5 + third + 0.25 + 0.4 + 1) / 5
	deeper := []sample.Block{frontier(0, 1, 2, 3, 4, 7), frontier(0, 3), frontier()}
	tail := (1 + 0 + third + 0.5 + 1 + 0) / 6 * (1 + 0.5) / 2
	for name, c := range map[string]struct {
		o      Settings
		blocks []sample.Block
		want   []float64 // nil: all 1
	}{
		"node":       {given("correction=node"), nil, []float64{1, 0, third, 0.5, 1}},
		"self":       {given("correction=self-normalised"), nil, []float64{1, 0, third, 0.5, 1}},
		"batch":      {given("correction=batch"), nil, []float64{mean, mean, mean, mean, mean}},
		"released":   {given("correction=released"), nil, []float64{released, released, released, released, released}},
		"none":       {given(), nil, nil},
		"message":    {given("correction=message"), nil, nil},
		"shrunk":     {given("correction=node", "shrink=0.5"), nil, []float64{1, 0.5, 0.5 + third/2, 0.75, 1}},
		"all shrunk": {given("correction=self-normalised", "shrink=1"), nil, nil},
		"pseudo":     {given("correction=node", "pseudo=2"), nil, []float64{1, 0.5, 3.0 / 5, 4.0 / 6, 1}},
		"all hops":   {given("correction=node", "hops=all"), deeper, []float64{tail, 0, tail * third, tail / 2, tail}},
		"all hops, half": {
			given("correction=batch", "hops=all", "shrink=0.5"), deeper,
			slices.Repeat([]float64{(1 + mean*tail) / 2}, 5),
		},
		"by groups": {given("correction=none", "loss=groups"), nil, slices.Repeat([]float64{7.0 / 10}, 5)},
		"as published": {
			given("correction=batch", "loss=groups"), nil,
			slices.Repeat([]float64{mean * 7 / 10}, 5),
		},
	} {
		c.o.Loader = Strict
		got := weights(t, c.o, batch, c.blocks...)
		if len(got) != len(c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, and should be %v", name, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-15 {
				t.Errorf("%s: the weight of vertex %d is %v, and should be %v", name, i, got[i], c.want[i])
			}
		}
	}
	// Where all is seen they are 1, and where deeper hops count they are not.
	for name, o := range map[string]Settings{"batch": given("correction=batch"), "node": given("correction=node"), "self": given("correction=self-normalised")} {
		if got := weights(t, o, batch); got != nil {
			t.Errorf("%s in a halo: %v", name, got)
		}
		o.Hops = "all"
		if got := weights(t, o, batch, frontier(0, 7), frontier(0)); len(got) != 5 || got[0] != 0.5 {
			t.Errorf("%s of all hops in a halo: %v", name, got)
		}
	}
}

// frontier is a block of some targets.
func frontier(targets ...uint32) sample.Block {
	b := sample.Block{Vertices: append(targets, 99)}
	b.Rows = len(targets)
	return b
}

// The weight of a batch is that from which the weights of its roots differ least, and
// weights without shrinkage are those that shrinkage by nothing leaves.
func TestTheBatchWeightIsNearest(t *testing.T) {
	batch := []uint32{0, 1, 2, 3, 4}
	each := weights(t, given("loader=strict", "correction=node"), batch)
	c := weights(t, given("loader=strict", "correction=batch"), batch)[0]
	off := func(c float64) (sum float64) {
		for _, w := range each {
			sum += (c - w) * (c - w)
		}
		return sum
	}
	for _, e := range []float64{1e-6, 1e-3, 0.1, 1} {
		if off(c) >= off(c+e) || off(c) >= off(c-e) {
			t.Errorf("%v is no nearer to %v than what is %v off", c, each, e)
		}
	}
	for _, correction := range []string{CorrectBatch, CorrectNode, CorrectSelf} {
		o := given("loader=strict", "correction="+correction)
		want := weights(t, o, batch)
		o.Shrink = math.Copysign(0, -1)
		if got := weights(t, o, batch); !slices.Equal(got, want) {
			t.Errorf("%s: %v and %v", correction, got, want)
		}
	}
}

// Where coverage is uneven, groups differ in what they count.
func TestWeightsDifferBetweenGroups(t *testing.T) {
	shards := cut(wild(n, 2500, 7), ends...)
	of, firsts := topology(t, shards), firstsOf(shards)
	o := sights["strict"]
	o.Correction = CorrectBatch
	s := schedule(t, len(shards), o, 1)
	k := NewCorrector(&o, s)
	var batch []uint32
	for v := range uint32(n) {
		batch = append(batch, v)
	}
	var all []float64
	for g := range s.Groups() {
		c := contextOf(t, of, firsts, s, o, g, 0, 1)
		w := k.Weigh(nil, c, batch, batch[:1], nil)
		if w == nil || !(w[0] > 0 && w[0] < 1) {
			t.Fatalf("group %d counts %v", g, w)
		}
		all = append(all, w[0])
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != s.Groups() {
		t.Errorf("groups count %v", all)
	}
}

func TestSumsOfWeights(t *testing.T) {
	o := given("correction=self-normalised")
	k := NewCorrector(&o, schedule(t, 4, o, 1))
	r := []float64{0.1, 0.7, 1.0 / 3, 0.9, 1e-9, 1, 0.25}
	one, other := 0.0, 0.0
	for i := range r {
		one += Sum(r[i:i+1], 1)
		other += Sum(r[len(r)-1-i:len(r)-i], 1)
	}
	if one != other || math.Abs(one-3.2833333) > 1e-6 {
		t.Errorf("weights add up to %v one way and to %v the other", one, other)
	}
	if got := Sum(nil, 7); got != 7 {
		t.Errorf("seven weights of 1 add up to %v", got)
	}
	if got := k.Scale(7, 3.5); got != 2 {
		t.Errorf("seven roots whose weights add up to 3.5 are scaled by %v", got)
	}
	if k.Scale(7, 7) != 1 || k.Scale(7, 0) != 1 {
		t.Error("what is whole, or nothing, is scaled")
	}
	o.Correction = CorrectNode
	if got := k.Scale(7, 3.5); got != 1 {
		t.Errorf("what is not normalised is scaled by %v", got)
	}
}

func TestModelsInWhichNoMessageCountsMore(t *testing.T) {
	message := given("loader=strict", "correction=message")
	sampled := given("loader=halo-sampled")
	largest := nn.Defaults("sage")
	largest.Aggregator = "max"
	for _, c := range []struct {
		o    Settings
		m    nn.Spec
		want string
	}{
		{message, nn.Defaults("gcn"), ""},
		{message, nn.Defaults("sage"), ""},
		{message, nn.Defaults("gat"), "grappa.correction=message: a gat weighs messages itself"},
		{sampled, nn.Defaults("gat"), "grappa.loader=halo-sampled: a gat weighs messages itself"},
		{message, largest, "grappa.correction=message: a sage with sage.aggregator=max takes the largest of messages"},
		{sampled, largest, "grappa.loader=halo-sampled: a sage with"},
		{message, nn.Defaults("rgcn"), "grappa.correction=message: an rgcn weighs messages by relation"},
		{sampled, nn.Defaults("hetero:sage"), "grappa.loader=halo-sampled: a hetero:sage weighs messages by relation"},
		{message, nn.Defaults("mpnn"), "grappa.correction=message: an mpnn makes messages of edges"},
		{given("loader=strict", "correction=node"), nn.Defaults("hgt"), ""},
		{given(), largest, ""},
		{given("loader=strict"), nn.Defaults("gat"), ""},
	} {
		if err := CheckModel(&c.o, c.m); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %s: %v", c.o, c.m.Model, err)
		}
	}
}

func TestWeighingAllocatesNothing(t *testing.T) {
	o := given("loader=strict", "hops=all", "correction=self-normalised")
	c, s := covered(t, o)
	k, batch, blocks := NewCorrector(&o, s), []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8}, []sample.Block{frontier(0, 1, 2), frontier(0)}
	to := make([]float64, 0, 9)
	if got := testing.AllocsPerRun(10, func() { to = k.Weigh(to, c, batch, batch[:5], blocks) }); got > 0 {
		t.Errorf("weighing takes %v allocations", got)
	}
}
