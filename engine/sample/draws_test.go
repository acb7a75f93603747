package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// star is a graph in which vertices 0 to hubs-1 hear from the same n others.
func star(t testing.TB, hubs, n int) *Topology {
	var edges []edge
	for v := range hubs {
		for u := range n {
			edges = append(edges, edge{uint32(hubs + u), uint32(v), 1})
		}
	}
	return topology(t, cut(edges, false, hubs+n))
}

// chiSquare is how far counts are from equal, in standard deviations of what is
// usual for as many.
func chiSquare(counts []int, each float64) float64 {
	chi := 0.0
	for _, n := range counts {
		d := float64(n) - each
		chi += d * d / each
	}
	free := float64(len(counts) - 1)
	return (chi - free) / math.Sqrt(2*free)
}

// TestWithoutIsFloydsWay compares all small numbers, where a mask is enough and where
// it isn't.
func TestWithoutIsFloydsWay(t *testing.T) {
	s := &Sampler{}
	for n := 2; n < 200; n++ {
		for _, k := range []int{1, 2, 10, 25, 63, 64, 65, 100, n - 1} {
			if k >= n {
				continue
			}
			key := keyed.Key(n*1000 + k)
			got, want := make([]uint32, k), []uint32{}
			s.without(got, uint32(n), key)
			draws := key.Draws()
			for j := n - k; j < n; j++ {
				p := uint32(draws.Below(uint64(j + 1)))
				if slices.Contains(want, p) {
					p = uint32(j)
				}
				want = append(want, p)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d of %d: %v and not %v", k, n, got, want)
			}
		}
	}
}

// TestDrawsAreUniform counts neighbours, and pairs of them, as one field of the key
// goes on while the others stay.
func TestDrawsAreUniform(t *testing.T) {
	const hubs, draws = 64, 60000
	var b Batch
	for _, shape := range [][2]int{{9, 4}, {24, 10}, {90, 25}, {200, 66}} {
		n, k := shape[0], shape[1]
		to := star(t, hubs, n)
		for name, at := range map[string]func(i int) (seed, epoch, step uint64, hub uint32){
			"seed":   func(i int) (uint64, uint64, uint64, uint32) { return uint64(i), 1, 1, 0 },
			"epoch":  func(i int) (uint64, uint64, uint64, uint32) { return 1, uint64(i), 1, 0 },
			"step":   func(i int) (uint64, uint64, uint64, uint32) { return 1, 1, uint64(i), 0 },
			"vertex": func(i int) (uint64, uint64, uint64, uint32) { return 1, 1, uint64(i / hubs), uint32(i % hubs) },
		} {
			counts, pairs := make([]int, n), make([]int, n*n)
			s := New(to, Options{Fanouts: []int{k}})
			times := draws / k
			for i := range times {
				seed, epoch, step, hub := at(i)
				s.o.Seed = seed
				if err := s.Sample(t.Context(), &b, epoch, step, []uint32{hub}); err != nil {
					t.Fatal(err)
				}
				drawn := b.Blocks[0].Vertices[1:]
				if len(drawn) != k {
					t.Fatalf("%d different neighbours, not %d", len(drawn), k)
				}
				for j, u := range drawn {
					counts[u-hubs]++
					for _, v := range drawn[:j] {
						pairs[min(u-hubs, v-hubs)*uint32(n)+max(u-hubs, v-hubs)]++
					}
				}
			}
			// Draws without replacement vary less than independent ones, by n-k of
			// n-1: it's the upper side that tells.
			if z := chiSquare(counts, float64(times*k)/float64(n)); z > 3.5 {
				t.Errorf("%d of %d, by %s: neighbours are %v deviations from uniform", k, n, name, z)
			}
			var upper []int
			for u := range n {
				upper = append(upper, pairs[u*n+u+1:u*n+n]...)
			}
			if z := chiSquare(upper, float64(times)*float64(k*(k-1))/float64(n*(n-1))); z > 3.5 {
				t.Errorf("%d of %d, by %s: pairs are %v deviations from uniform", k, n, name, z)
			}
		}
	}
}

// TestHopsAndVerticesAreIndependent counts the pairs of what is drawn at two places
// of one batch.
func TestHopsAndVerticesAreIndependent(t *testing.T) {
	// Both vertices hear from the same 12 others, and are drawn for at both hops.
	const n, times = 12, 40000
	var edges []edge
	for v := range uint32(2) {
		for u := range uint32(n) {
			edges = append(edges, edge{2 + u, v, 1})
		}
	}
	to := topology(t, cut(edges, false, 2+n))
	s := New(to, Options{Fanouts: []int{1, 1}, Seed: 5})
	var b Batch
	hops, vertices := make([]int, n*n), make([]int, n*n)
	for step := range uint64(times) {
		if err := s.Sample(t.Context(), &b, 0, step, []uint32{0, 1}); err != nil {
			t.Fatal(err)
		}
		source := func(block, row int) int {
			x := &b.Blocks[block]
			return int(x.Vertices[x.Indices[x.Indptr[row]]]) - 2
		}
		hops[source(1, 0)*n+source(0, 0)]++
		vertices[source(1, 0)*n+source(1, 1)]++
	}
	for name, counts := range map[string][]int{"hops": hops, "vertices": vertices} {
		if z := chiSquare(counts, times/(n*n)); math.Abs(z) > 3.5 {
			t.Errorf("draws of two %s are %v deviations from independent", name, z)
		}
	}
}

// TestSampledRowsStandForWholeOnes has the weighted sums of sampled rows, averaged
// over many seeds, come close to those of the whole rows.
func TestSampledRowsStandForWholeOnes(t *testing.T) {
	const n, times, root = 60, 20000, 0
	for _, form := range []Form{{SelfLoops: false, Weighting: Sums}, {SelfLoops: true, Weighting: Sums}, {SelfLoops: false, Weighting: Symmetric}, {SelfLoops: true, Weighting: Symmetric}} {
		a := newNaive(n, wild(n, 600, 4), true, Options{Form: form})
		to := topology(t, cut(wild(n, 600, 4), true, 20, n))
		x := func(u uint32) float64 { return math.Sin(float64(u)) + 0.5 }
		want, square := 0.0, 0.0
		for _, e := range a.row(0, 0, 0, root, 0) {
			want += e.value * x(e.from)
		}
		mean := 0.0
		for seed := range uint64(times) {
			s := New(to, Options{Fanouts: []int{5}, Form: form, Seed: seed})
			var b Batch
			if err := s.Sample(t.Context(), &b, 0, 0, []uint32{root}); err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for e, u := range b.Blocks[0].Indices {
				sum += float64(b.Blocks[0].Values[e]) * x(b.Blocks[0].Vertices[u])
			}
			mean += sum / times
			square += sum * sum / times
		}
		if len(a.in[root]) <= 5 {
			t.Fatal("the root is too small for anything to be drawn")
		}
		deviation := math.Sqrt((square - mean*mean) / times)
		if math.Abs(mean-want) > 4*deviation || deviation > 0.02*math.Abs(want) {
			t.Errorf("%v: the mean is %v ± %v and not %v", form, mean, deviation, want)
		}
	}
}

// TestSymmetricIsTheMatrix multiplies D^-1/2 (A+I) D^-1/2 out.
func TestSymmetricIsTheMatrix(t *testing.T) {
	const n = 80
	edges := wild(n, 900, 5)
	edges = append(edges, edge{3, 5, 0}, edge{14, 5, 0}) // a row whose degree is 0 without a self-loop
	for _, loops := range []bool{false, true} {
		var matrix [n][n]float64
		for _, e := range edges {
			matrix[e.to][e.from] += float64(e.weight)
		}
		for v := range n {
			if loops && matrix[v][v] == 0 {
				matrix[v][v] = 1
			}
		}
		var root [n]float64
		for v := range n {
			d := 0.0
			for _, w := range matrix[v] {
				d += w
			}
			if d > 0 {
				root[v] = 1 / math.Sqrt(d)
			}
		}
		s := New(topology(t, cut(edges, true, 33, n)), Options{Fanouts: []int{0}, Form: Form{SelfLoops: loops, Weighting: Symmetric}})
		roots := make([]uint32, n)
		for v := range roots {
			roots[v] = uint32(n - 1 - v)
		}
		var b Batch
		if err := s.Sample(t.Context(), &b, 0, 0, roots); err != nil {
			t.Fatal(err)
		}
		x := &b.Blocks[0]
		var got [n][n]float64
		for r := range n {
			for e := x.Indptr[r]; e < x.Indptr[r+1]; e++ {
				got[x.Vertices[r]][x.Vertices[x.Indices[e]]] += float64(x.Values[e])
			}
		}
		for v := range n {
			for u := range n {
				if want := root[v] * matrix[v][u] * root[u]; math.Abs(got[v][u]-want) > 1e-6 {
					t.Fatalf("loops %v: from %d to %d is %v and not %v", loops, u, v, got[v][u], want)
				}
			}
		}
	}
}
