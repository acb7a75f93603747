package arrange

import (
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// Split divides things with such costs into one run per stage, so that the most expensive
// run costs as little as possible. It returns where each begins, then the number of things.
// Of several such divisions it takes the one whose runs differ least.
func Split(costs []float64, stages int) []int {
	n := len(costs)
	sums := make([]float64, n+1)
	for i, c := range costs {
		sums[i+1] = sums[i] + c
	}
	// most is the least possible cost of the most expensive run.
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

// divided returns the division with the least total, and that total. add adds the cost of a
// run to the total of those before it; sums are the costs before each thing.
func divided(sums []float64, stages int, add func(before, run float64) float64) (firsts []int, of float64) {
	n := len(sums) - 1
	// least[s][i] is the least total of s+1 runs over the first i things, and cut[s][i]
	// where the last of them begins.
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

// Columns returns the columns of a gradient that belong to some of the model's stages. A layer
// that is two of them has all of its columns in both.
func Columns(m *nn.Model, first, end int) (from, to int) {
	from, to = m.Size(), 0
	for _, p := range m.Params() {
		for _, info := range m.Stages()[first:end] {
			if strings.HasPrefix(p.Name, info.Name+".") {
				from, to = min(from, p.Offset), max(to, p.Offset+p.Rows*p.Cols)
			}
		}
	}
	return min(from, to), to
}

// Units returns what stages are divided into: one layer each, together with whatever has no
// edges of its own. The result is the first of the model's stages in each unit, then their
// number.
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

// Costs returns the approximate multiplications of each unit: products of rows, forward and
// backward, and rows that go along edges.
func Costs(stages []nn.StageInfo, units []int, vertices, edges int) []float64 {
	const (
		products = 3 // forward, for the weights and for the rows
		ways     = 2 // along edges
	)
	all := make([]float64, len(units)-1)
	for u := range all {
		for _, s := range stages[units[u]:units[u+1]] {
			product, along := Work(&s, vertices, edges)
			all[u] += products*product + ways*along
		}
	}
	return all
}

// Work returns the approximate multiplications of one of the model's stages, forward: a
// product of rows, and rows that go along edges.
func Work(s *nn.StageInfo, vertices, edges int) (product, along float64) {
	const edge = 16 // such numbers come from memory: see BenchmarkEdgeInMultiplications
	return float64(vertices) * float64(s.In) * float64(s.Out), edge * float64(s.Hops) * float64(edges) * float64(min(s.In, s.Out))
}

// Cut returns the first of the model's stages in each stage of the pipeline, then their
// number. There are at least as many units as stages.
func Cut(stages []nn.StageInfo, of, vertices, edges int) []int {
	units := Units(stages)
	cuts := Split(Costs(stages, units, vertices, edges), of)
	for i, u := range cuts {
		cuts[i] = units[u]
	}
	return cuts
}

// ShardCosts returns the cost of each shard by its vertices and incoming edges, so that ways
// take about as long as each other however much degrees differ. No measurement may enter
// it: ways decide what is learnt.
func ShardCosts(stages []nn.StageInfo, firsts []uint32, edges []int) []uint64 {
	all, units := make([]uint64, len(firsts)-1), Units(stages)
	for shard := range all {
		for _, c := range Costs(stages, units, int(firsts[shard+1]-firsts[shard]), edges[shard]) {
			all[shard] += uint64(c)
		}
	}
	return all
}
