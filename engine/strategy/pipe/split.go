package pipe

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// Split divides what costs so much into runs whose most expensive costs as little as can
// be, one run for each stage: where each begins, then how many things there are. Of such
// divisions it takes one whose runs cost most alike, so that no other is nearly as dear.
func Split(costs []float64, stages int) []int {
	n := len(costs)
	sums := make([]float64, n+1)
	for i, c := range costs {
		sums[i+1] = sums[i] + c
	}
	// most is what the dearest run costs at least: with it, nothing is too dear.
	_, most := divided(sums, stages, func(before, run float64) float64 { return max(before, run) })
	most *= 1 + 1e-9 // sums are rounded
	firsts, _ := divided(sums, stages, func(before, run float64) float64 {
		if run > most {
			return math.Inf(1)
		}
		return before + run*run
	})
	return firsts
}

// divided divides into so many runs that come to least, and says to what, where what a run costs adds
// to what those before it came to. sums are those of the things before each.
func divided(sums []float64, stages int, add func(before, run float64) float64) (firsts []int, of float64) {
	n := len(sums) - 1
	// least[s][i] is what s+1 runs over the first i things come to, and cut where the last
	// of them begins.
	least, cut := make([][]float64, stages), make([][]int, stages)
	for s := range stages {
		least[s], cut[s] = make([]float64, n+1), make([]int, n+1)
		for i := range least[s] {
			least[s][i] = math.Inf(1)
			if s == 0 {
				least[s][i] = add(0, sums[i])
				continue
			}
			cut[s][i] = s
			for j := s; j < i; j++ {
				if c := add(least[s-1][j], sums[i]-sums[j]); c < least[s][i] {
					least[s][i], cut[s][i] = c, j
				}
			}
		}
	}
	firsts = []int{n}
	for s := stages - 1; s > 0; s-- {
		firsts = append(firsts, cut[s][firsts[len(firsts)-1]])
	}
	firsts = append(firsts, 0)
	slices.Reverse(firsts)
	return firsts, least[stages-1][n]
}

// Units are what stages are divided into: a layer each, with what has no edges of its own
// beside it. It returns the first of each unit among the model's stages, then how many
// those are.
func Units(stages []nn.StageInfo) []int {
	firsts, layers := []int{0}, 0
	for i, s := range stages {
		if s.Hops == 0 {
			continue
		}
		if layers++; layers > 1 {
			firsts = append(firsts, i)
		}
	}
	return append(firsts, len(stages))
}

// costs is about what each unit takes, in multiplications: products of rows, there and
// back, and rows that go along edges.
func costs(stages []nn.StageInfo, units []int, vertices, edges int) []float64 {
	const (
		products = 3 // forward, for the weights and for the rows
		ways     = 2 // along edges
	)
	all := make([]float64, len(units)-1)
	for u := range all {
		for _, s := range stages[units[u]:units[u+1]] {
			product, along := work(&s, vertices, edges)
			all[u] += products*product + ways*along
		}
	}
	return all
}

// work is about what a stage of the model takes for so many vertices and edges, forward, in
// multiplications: a product of rows, and rows that go along edges.
func work(s *nn.StageInfo, vertices, edges int) (product, along float64) {
	const edge = 16 // a number that follows an edge comes from memory: BenchmarkEdgeInMultiplications
	return float64(vertices) * float64(s.In) * float64(s.Out), edge * float64(s.Hops) * float64(edges) * float64(min(s.In, s.Out))
}

// Cut says where among the model's stages each stage of the pipeline begins, then how
// many those are. There are as many units at least.
func Cut(stages []nn.StageInfo, of, vertices, edges int) []int {
	units := Units(stages)
	cuts := Split(costs(stages, units, vertices, edges), of)
	for i, u := range cuts {
		cuts[i] = units[u]
	}
	return cuts
}
