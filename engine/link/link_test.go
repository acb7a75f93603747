package link

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// edges lists the directed edges of a topology, without loops.
func edges(t *sample.Topology) map[Pair]bool {
	all := map[Pair]bool{}
	for v := range t.Vertices() {
		sources, _ := t.Row(v)
		for _, u := range sources {
			if int(u) != v {
				all[Pair{Source: uint32(u), Target: uint32(v)}] = true
			}
		}
	}
	return all
}

// pairsOf returns the pairs of Cora, with all of its edges.
func pairsOf(t *testing.T, s *Spec, seed uint64) (*Pairs, *sample.Topology) {
	t.Helper()
	whole, err := sample.NewTopology(enginetest.Cora(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), s, seed, whole)
	if err != nil {
		t.Fatal(err)
	}
	return p, whole
}

// Each edge is in one part, together with its reverse, and parts are as large as was asked for.
func TestEachEdgeIsInOnePart(t *testing.T) {
	p, whole := pairsOf(t, Default(), 3)
	left := edges(whole)
	total := 0
	for part, pairs := range p.Of {
		total += len(pairs)
		for _, pair := range pairs {
			back := Pair{Source: pair.Target, Target: pair.Source}
			if !left[pair] {
				t.Fatalf("%v of part %d is no edge, or in two parts", pair, part)
			}
			delete(left, pair)
			delete(left, back)
			hidden := graph.Mark(part) != graph.Train
			if p.Hidden(pair.Target, pair.Source, 0) != hidden || p.Hidden(pair.Source, pair.Target, 0) != hidden {
				t.Fatalf("%v of part %d: hidden is not %v in both directions", pair, part, hidden)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("%d edges are in no part", len(left))
	}
	for part := graph.Train; part <= graph.Test; part++ {
		share, want := float64(len(p.Of[part]))/float64(total), p.Split[part-graph.Train]
		if math.Abs(share-want) > 4*math.Sqrt(want*(1-want)/float64(total)) {
			t.Errorf("part %d has a share of %g, want %g", part, share, want)
		}
	}
	leads := 0
	for _, pair := range p.Of[graph.Train] {
		if pair.Source < pair.Target {
			leads++
		}
	}
	if n := len(p.Of[graph.Train]); leads < n*2/5 || leads > n*3/5 {
		t.Errorf("in %d of %d pairs the lower vertex is the source", leads, n)
	}
	other, _ := pairsOf(t, Default(), 4)
	if slices.Equal(other.Of[graph.Test], p.Of[graph.Test]) {
		t.Error("another seed splits alike")
	}
	none, _ := pairsOf(t, &Spec{Split: [3]float64{0.9, 0.1, 0}, Width: 1, Negatives: 1, Decoder: "dot"}, 3)
	if len(none.Of[graph.Test]) > 0 || len(none.Of[graph.Validation]) == 0 {
		t.Errorf("a split without a test has %d and %d pairs", len(none.Of[graph.Validation]), len(none.Of[graph.Test]))
	}
}

// Negatives are no edges: in evaluations of the whole graph, in epochs of what training sees.
func TestNegativesAreNoEdges(t *testing.T) {
	p, whole := pairsOf(t, Default(), 3)
	all, differ := edges(whole), 0
	for part := graph.Train; part <= graph.Test; part++ {
		for _, of := range p.Of[part] {
			for epoch := range uint64(3) {
				v := p.negative(of, epoch, 1, nil)
				edge := all[Pair{Source: of.Source, Target: v}] || all[Pair{Source: v, Target: of.Source}]
				if v == of.Source || edge && (epoch == 0 || !p.Hidden(of.Source, v, 0)) {
					t.Fatalf("in epoch %d the negative of %v is %d", epoch, of, v)
				}
				if v != p.negative(of, epoch, 1, nil) {
					t.Fatal("drawn again, a negative is another")
				}
				if v != p.negative(of, epoch, 2, nil) && v != p.negative(of, epoch+1, 1, nil) {
					differ++
				}
			}
		}
	}
	if differ == 0 {
		t.Error("all negatives of a pair are the same")
	}
}

// In a graph of two vertices nothing but edges can be drawn.
func TestVerticesJoinedToAllHaveNegatives(t *testing.T) {
	p := &Pairs{Spec: *Default()}
	var err error
	if p.whole, err = sample.NewTopology([]*graph.Shard{{Vertices: 2, Total: 2, Indptr: []int64{0, 1, 2}, Indices: []int32{1, 0}}}); err != nil {
		t.Fatal(err)
	}
	if v := p.negative(Pair{Source: 0, Target: 1}, 1, 0, nil); v > 1 {
		t.Errorf("vertex %d of 2", v)
	}
}

// A step's words name the rows of the ends of its pairs and of their negatives, whoever has
// which sources.
func TestWordsOfAStep(t *testing.T) {
	s := *Default()
	s.Negatives = 2
	p, _ := pairsOf(t, &s, 3)
	var b Batch
	places := []uint32{5, 900, 17, 18, 19, 20, 21, 2000}
	b.Begin(p, places, 4, nil)
	want := map[[2]uint32]int32{}
	for _, i := range places {
		of := p.Of[graph.Train][i]
		want[[2]uint32{of.Source, of.Target}] = 1
		for n := range 2 {
			want[[2]uint32{of.Source, p.negative(of, 4, n, nil)}] = 0
		}
	}
	got := map[[2]uint32]int32{}
	sources := b.Sources()
	for _, some := range [][]uint32{sources[:3], sources[3:]} {
		ends, words := b.Ends(nil, nil, some)
		if seen := slices.Sorted(slices.Values(ends)); len(slices.Compact(seen)) != len(ends) {
			t.Errorf("a vertex is twice in %v", ends)
		}
		for i := 0; i < len(words); i += WordsOfPair {
			got[[2]uint32{ends[words[i]], ends[words[i+1]]}] = words[i+2]
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d pairs, want %d", len(got), len(want))
	}
	for pair, label := range want {
		if is, known := got[pair]; !known || is != label {
			t.Errorf("%v is %d, %v, want %d", pair, is, known, label)
		}
	}
}

// A step that was begun before takes no memory again.
func TestAStepAllocatesNothing(t *testing.T) {
	p, _ := pairsOf(t, Default(), 3)
	var b Batch
	var ends []uint32
	var words []int32
	one := func() {
		b.Begin(p, []uint32{5, 900, 17, 18}, 4, nil)
		ends, words = b.Ends(ends[:0], words[:0], b.Sources())
	}
	one()
	if n := testing.AllocsPerRun(10, one); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// Scores are those of the definitions, with ties.
func TestScores(t *testing.T) {
	p, whole := pairsOf(t, Default(), 3)
	const columns = 2
	r := rand.New(rand.NewPCG(2, 1))
	rows := make([]float32, whole.Vertices()*columns)
	for i := range rows {
		rows[i] = float32(r.IntN(5) - 2)
	}
	s := NewScorer(p, CrossEntropies, Threads{})
	for part := graph.Train; part <= graph.Test; part++ {
		got, err := s.Part(t.Context(), part, rows, columns, nil)
		if err != nil {
			t.Fatal(err)
		}
		pairs, step := s.scored(part)
		var sides [2][]float64
		loss := 0.0
		for i := 0; i < len(pairs); i += step {
			of := pairs[i]
			yes, no := s.logit(rows, columns, nil, of), s.logit(rows, columns, nil, Pair{Source: of.Source, Target: p.negative(of, 0, 0, nil)})
			sides[metric.With], sides[metric.Without] = append(sides[metric.With], yes), append(sides[metric.Without], no)
			loss += (math.Log1p(math.Exp(-yes)) + math.Log1p(math.Exp(no))) / 2
		}
		n := float64(len(sides[metric.With]))
		area, precision := 0.0, 0.0
		for _, yes := range sides[metric.With] {
			right, wrong := 0.0, 0.0
			for _, no := range sides[metric.Without] {
				switch {
				case yes > no:
					area++
				case yes == no:
					area += 0.5
				}
				if no >= yes {
					wrong++
				}
			}
			for _, other := range sides[metric.With] {
				if other >= yes {
					right++
				}
			}
			precision += right / (right + wrong)
		}
		want := Score{Count: int(n), Loss: loss / n, Area: area / n / n, Precision: precision / n}
		if got.Count != want.Count || math.Abs(got.Loss-want.Loss) > 1e-9 || math.Abs(got.Area-want.Area) > 1e-12 || math.Abs(got.Precision-want.Precision) > 1e-12 {
			t.Errorf("part %d has %+v, want %+v", part, got, want)
		}
		if part != graph.Train && got.Count != len(p.Of[part]) || got.Count < 100 {
			t.Errorf("part %d: %d of %d pairs are scored", part, got.Count, len(p.Of[part]))
		}
	}
	p.Of[graph.Test] = nil
	if got, err := s.Part(t.Context(), graph.Test, rows, columns, nil); err != nil || got.Count != 0 || got.Loss != 0 || got.Area != 0 || got.Precision != 0 || got.Reciprocal != 0 {
		t.Errorf("no pairs have the score %+v: %v", got, err)
	}
}

func TestSpecsThatCantBe(t *testing.T) {
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(s *Spec){
		"a share of -0.1":           func(s *Spec) { s.Split[1] = -0.1 },
		"a share of NaN":            func(s *Spec) { s.Split[1] = math.NaN() },
		"shares of 0.95 in all":     func(s *Spec) { s.Split[2] = 0.05 },
		"no edges for training":     func(s *Spec) { s.Split = [3]float64{0, 0.5, 0.5} },
		"{link.width} is 0":         func(s *Spec) { s.Width = 0 },
		"{link.width} is 4097":      func(s *Spec) { s.Width = MostWidth + 1 },
		"{link.negatives} is 0":     func(s *Spec) { s.Negatives = 0 },
		`{link.decoder} is "no"`:    func(s *Spec) { s.Decoder = "no" },
		`negatives} come from "x"`:  func(s *Spec) { s.From = "x" },
		"{link.margin} is -1":       func(s *Spec) { s.Margin = -1 },
		"{link.margin} is NaN":      func(s *Spec) { s.Margin = math.NaN() },
		"{link.margin} is +Inf":     func(s *Spec) { s.Margin = math.Inf(1) },
		"{link.ranks} is for pair":  func(s *Spec) { s.Ranks = Given },
		"{link.ranks} is for":       func(s *Spec) { s.Ranks = GivenOfSource },
		"{link.ranks} is -4":        func(s *Spec) { s.Ranks = -4 },
		"edges of the dataset have": func(s *Spec) { s.Given, s.Relation = &[3]uint64{8, 1, 1}, &Relation{Name: "edge"} },
		"{link.ranks} is 104857":    func(s *Spec) { s.Ranks = MostRanks + 1 },
		"{link.hits} has 4 ranks":   func(s *Spec) { s.Hits = []int{1, 2, 3, 4} },
		"{link.hits} is [0 3]":      func(s *Spec) { s.Hits = []int{0, 3} },
		"{link.hits} is [1048577]":  func(s *Spec) { s.Hits = []int{MostRanks + 1} },
		"{link.hits} does not asc":  func(s *Spec) { s.Hits = []int{20, 10} },
		"give each rank once":       func(s *Spec) { s.Hits = []int{20, 20} },
	} {
		s := Default()
		change(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}
