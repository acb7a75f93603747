package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

func TestMultilevelIsBalanced(t *testing.T) {
	for name, g := range map[string]*Graph{
		"grid":     gridGraph(40),
		"uniform":  uniformGraph(2000, 8000, 1),
		"skewed":   skewedGraph(11, 15000, 2),
		"stars":    starsGraph(80, 20),
		"cliques":  cliquesGraph(130, 8),
		"no edges": joined(2000, nil),
		"sparse":   uniformGraph(3000, 1500, 3),
	} {
		for _, parts := range []int{2, 13, 32} {
			t.Run(fmt.Sprintf("%s in %d", name, parts), func(t *testing.T) {
				o := Options{Parts: parts, Seed: 5}
				part := multilevel(t, g, o)
				if len(part) != g.vertices() {
					t.Fatalf("%d parts for %d vertices", len(part), g.vertices())
				}
				if p, c := overweight(g, part, o); p >= 0 {
					t.Errorf("part %d is too heavy in constraint %d", p, c)
				}
			})
		}
	}
}

func TestMultilevelDependsOnTheSeedAlone(t *testing.T) {
	for name, g := range map[string]*Graph{"skewed": skewedGraph(12, 30000, 1), "grid": gridGraph(50)} {
		var first []uint16
		for _, threads := range []int{1, 2, 5, 5} {
			part := multilevel(t, g, Options{Parts: 12, Seed: 9, Threads: threads})
			if first == nil {
				first = part
			}
			if !slices.Equal(part, first) {
				t.Errorf("%s: %d threads make another partition", name, threads)
			}
		}
		if slices.Equal(first, multilevel(t, g, Options{Parts: 12, Seed: 10})) {
			t.Errorf("%s: another seed makes the same partition", name)
		}
	}
}

func TestMultilevelLeavesTheGraphAlone(t *testing.T) {
	g := skewedGraph(11, 20000, 1)
	was := Graph{Indptr: slices.Clone(g.Indptr), Indices: slices.Clone(g.Indices), Weights: slices.Clone(g.Weights)}
	multilevel(t, g, Options{Parts: 8})
	if !slices.Equal(g.Indptr, was.Indptr) || !slices.Equal(g.Indices, was.Indices) || !slices.Equal(g.Weights, was.Weights) {
		t.Error("the graph has changed")
	}
}

func TestMultilevelFindsCommunities(t *testing.T) {
	g, groupOf := communityGraph(16, 250, 16, 4, 1)
	planted := cutOf(g, groupOf)
	if cut := partCut(g, multilevel(t, g, Options{Parts: 16})); float64(cut) > 1.05*float64(planted) {
		t.Errorf("cuts %d edges where the planted communities cut %d", cut, planted)
	}
}

func TestMultilevelOfAGrid(t *testing.T) {
	const side = 64
	g := gridGraph(side)
	for parts, best := range map[int]int64{2: side, 4: 2 * side, 16: 6 * side, 64: 14 * side} {
		if cut := partCut(g, multilevel(t, g, Options{Parts: parts})); float64(cut) > 1.3*float64(best) {
			t.Errorf("cuts %d edges in %d parts where %d are enough", cut, parts, best)
		}
	}
}

func TestMultilevelCutsNoClique(t *testing.T) {
	g := weighed(cliquesGraph(64, 10), func(int) uint32 { return 1 })
	if cut := partCut(g, multilevel(t, g, Options{Parts: 16})); cut != 0 {
		t.Errorf("cuts %d edges where none need be", cut)
	}
}

func TestRunsOfPartsAreGoodPartitions(t *testing.T) {
	// Communities of communities, 3 of 16: halving would cut the second in two.
	g, large := nestedGraph(3, 16, 40, 1)
	part := multilevel(t, g, Options{Parts: 48})
	planted := cutOf(g, large)
	cut := cutOf(g, func(v int) int { return int(part[v]) / 16 })
	if float64(cut) > 1.4*float64(planted) {
		t.Errorf("3 runs cut %d edges where the planted communities cut %d", cut, planted)
	}
	g, large = nestedGraph(8, 8, 40, 1)
	part = multilevel(t, g, Options{Parts: 64})
	planted = cutOf(g, large)
	cut = cutOf(g, func(v int) int { return int(part[v]) / 8 })
	if float64(cut) > 1.1*float64(planted) {
		t.Errorf("8 runs cut %d edges where the planted communities cut %d", cut, planted)
	}
}

func TestMultilevelKeepsTheTolerance(t *testing.T) {
	for name, g := range map[string]*Graph{"grid": gridGraph(50), "skewed": skewedGraph(12, 30000, 1)} {
		const parts = 4
		load := make([]int64, parts*3)
		for v, p := range multilevel(t, g, Options{Parts: parts}) {
			for c := range 3 {
				load[int(p)*3+c] += int64(g.Weights[v*3+c])
			}
		}
		for i, load := range load {
			if most := tolerances[i%3] * float64(g.totals()[i%3]) / parts; float64(load) > most {
				t.Errorf("%s: part %d has %d of weight %d, at most %g are allowed", name, i/3, load, i%3, most)
			}
		}
	}
}

func TestMultilevelHeedsEdgeWeights(t *testing.T) {
	// A ring in which each tenth edge is light: only those should be cut.
	const n = 1000
	var pairs [][2]uint32
	for v := range uint32(n) {
		pairs = append(pairs, [2]uint32{v, (v + 1) % n})
	}
	g := weighed(joined(n, pairs), func(int) uint32 { return 1 })
	g.EdgeWeights = make([]uint32, len(g.Indices))
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := int(g.Indices[e])
			g.EdgeWeights[e] = 100
			if (min(u, v)%10 == 9 && max(u, v)%10 == 0) || u+v == n-1 {
				g.EdgeWeights[e] = 1
			}
		}
	}
	if cut := partCut(g, multilevel(t, g, Options{Parts: 5})); cut >= 100 {
		t.Errorf("cuts edges of weight %d, heavy ones too", cut)
	}
}

func TestMultilevelHeedsWeights(t *testing.T) {
	g := weighed(gridGraph(40), func(v int) uint32 { return uint32(1 + v%40*v%40) })
	for _, tolerance := range []float64{1.02, 1.3} {
		o := Options{Parts: 7, Tolerance: []float64{tolerance}}
		if p, _ := overweight(g, multilevel(t, g, o), o); p >= 0 {
			t.Errorf("part %d is too heavy for a tolerance of %g", p, tolerance)
		}
	}
}

func TestMultilevelOfOddGraphs(t *testing.T) {
	idle := gridGraph(20)
	for v := range idle.vertices() {
		idle.Weights[3*v+2] = 0
	}
	heavy := weighed(gridGraph(20), func(v int) uint32 { return 1 + 10000*(1-min(uint32(v), 1)) })
	for name, test := range map[string]struct {
		g     *Graph
		parts int
	}{
		"nothing":            {joined(0, nil), 4},
		"one vertex":         {joined(1, nil), 4},
		"one part":           {gridGraph(5), 1},
		"more parts":         {gridGraph(3), 20},
		"most parts":         {weighed(gridGraph(33), func(int) uint32 { return 1 }), MaxParts},
		"a part each":        {gridGraph(8), 64},
		"an idle constraint": {idle, 6},
		"one heavy vertex":   {heavy, 4},
		"all weights zero":   {weighed(gridGraph(20), func(int) uint32 { return 0 }), 4},
		"one star":           {starsGraph(1, 1000), 8},
		"one clique":         {cliquesGraph(1, 80), 7},
	} {
		o := Options{Parts: test.parts}
		part := multilevel(t, test.g, o)
		if p, c := overweight(test.g, part, o); p >= 0 {
			t.Errorf("%s: part %d is too heavy in constraint %d", name, p, c)
		}
	}
}

func TestMultilevelStops(t *testing.T) {
	g := skewedGraph(12, 40000, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Multilevel(ctx, g, Options{Parts: 64, Tolerance: tolerances}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	for share := 0.0; share < 0.9; share += 0.2 {
		ctx, cancel := context.WithCancel(t.Context())
		var at time.Time
		report := func(done float64) {
			if done >= share && at.IsZero() {
				at = time.Now()
				cancel()
			}
		}
		_, err := Multilevel(ctx, g, Options{Parts: 64, Tolerance: tolerances, Report: report})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %g: %v", share, err)
		}
		if late := time.Since(at); late > 2*time.Second {
			t.Errorf("cancelled after %g: goes on for %v", share, late)
		}
	}
}

func TestMultilevelReports(t *testing.T) {
	last := 0.0
	multilevel(t, gridGraph(50), Options{Parts: 8, Report: func(done float64) {
		if done < last || done > 1 {
			t.Errorf("%g done after %g", done, last)
		}
		last = done
	}})
	if last != 1 {
		t.Errorf("ends with %g done", last)
	}
}

func TestMultilevelRefuses(t *testing.T) {
	good := func() (*Graph, Options) { return gridGraph(4), Options{Parts: 2, Tolerance: tolerances} }
	for name, spoil := range map[string]func(g *Graph, o *Options){
		"no parts":          func(_ *Graph, o *Options) { o.Parts = 0 },
		"too many parts":    func(_ *Graph, o *Options) { o.Parts = MaxParts + 1 },
		"tolerances":        func(_ *Graph, o *Options) { o.Tolerance = tolerances[:2] },
		"tolerance below 1": func(_ *Graph, o *Options) { o.Tolerance = []float64{1, 1, 0.9} },
		"tolerance NaN":     func(_ *Graph, o *Options) { o.Tolerance = []float64{1, 1, math.NaN()} },
		"threads":           func(_ *Graph, o *Options) { o.Threads = -1 },
		"no indptr":         func(g *Graph, _ *Options) { g.Indptr = nil },
		"first":             func(g *Graph, _ *Options) { g.Indptr[0] = 1 },
		"last":              func(g *Graph, _ *Options) { g.Indptr[16]++ },
		"falls":             func(g *Graph, _ *Options) { g.Indptr[3] = 40 },
		"beyond":            func(g *Graph, _ *Options) { g.Indices[5] = 16 },
		"itself":            func(g *Graph, _ *Options) { g.Indices[0] = 0 },
		"weights":           func(g *Graph, _ *Options) { g.Weights = g.Weights[1:] },
		"edge weights":      func(g *Graph, _ *Options) { g.EdgeWeights = make([]uint32, 3) },
		"constraints":       func(g *Graph, _ *Options) { g.Constraints = 0 },
	} {
		g, o := good()
		spoil(g, &o)
		if _, err := Multilevel(t.Context(), g, o); !errors.Is(err, ErrGraph) && !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
