package partition

import (
	"slices"
	"testing"
)

// joined makes a graph of pairs of vertices: loops are left out, what is there twice stands once. Its weights are
// a vertex, its degree, and one vertex in eight.
func joined(vertices int, pairs [][2]uint32) *Graph {
	ends := make([][]uint32, vertices)
	for _, p := range pairs {
		if p[0] != p[1] {
			ends[p[0]] = append(ends[p[0]], p[1])
			ends[p[1]] = append(ends[p[1]], p[0])
		}
	}
	g := &Graph{Indptr: []int64{0}, Constraints: 3}
	for v, others := range ends {
		slices.Sort(others)
		others = slices.Compact(others)
		g.Indices = append(g.Indices, others...)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		eighth := uint32(0)
		if randomMix(1, uint64(v))%8 == 0 {
			eighth = 1
		}
		g.Weights = append(g.Weights, 1, uint32(len(others)), eighth)
	}
	return g
}

// weighed is g with one weight for each vertex.
func weighed(g *Graph, weight func(v int) uint32) *Graph {
	w := make([]uint32, g.vertices())
	for v := range w {
		w[v] = weight(v)
	}
	return &Graph{Indptr: g.Indptr, Indices: g.Indices, EdgeWeights: g.EdgeWeights, Constraints: 1, Weights: w}
}

func gridGraph(side int) *Graph {
	var pairs [][2]uint32
	for y := range side {
		for x := range side {
			v := uint32(y*side + x)
			if x+1 < side {
				pairs = append(pairs, [2]uint32{v, v + 1})
			}
			if y+1 < side {
				pairs = append(pairs, [2]uint32{v, v + uint32(side)})
			}
		}
	}
	return joined(side*side, pairs)
}

// uniformGraph joins vertices at random.
func uniformGraph(vertices, edges int, seed uint64) *Graph {
	var pairs [][2]uint32
	for i := range uint64(edges) {
		a, b := randomMix(seed, 2*i)%uint64(vertices), randomMix(seed, 2*i+1)%uint64(vertices)
		pairs = append(pairs, [2]uint32{uint32(a), uint32(b)})
	}
	return joined(vertices, pairs)
}

// skewedGraph has few vertices with very many edges, and many with none, as R-MAT graphs have.
func skewedGraph(size uint, edges int, seed uint64) *Graph {
	var pairs [][2]uint32
	for i := range uint64(edges) {
		var p [2]uint32
		for bit := range size {
			at := randomMix(seed+uint64(bit), i) % 100
			down, right := uint32(0), uint32(0)
			switch {
			case at < 57:
			case at < 76:
				right = 1
			case at < 95:
				down = 1
			default:
				down, right = 1, 1
			}
			p[0], p[1] = p[0]*2+down, p[1]*2+right
		}
		pairs = append(pairs, p)
	}
	return joined(1<<size, pairs)
}

// communityGraph has groups of equal size; each vertex has about inside edges within its own and outside to
// others. Neighbouring numbers are in different groups.
func communityGraph(groups, size, inside, outside int, seed uint64) (g *Graph, groupOf func(v int) int) {
	n := groups * size
	var pairs [][2]uint32
	for v := range n {
		for i := range (inside + outside) / 2 {
			roll := randomMix(seed, uint64(v*64+i))
			u := uint32(roll % uint64(n))
			if i < inside/2 {
				u = uint32(int(roll%uint64(size))*groups + v%groups)
			}
			pairs = append(pairs, [2]uint32{uint32(v), u})
		}
	}
	return joined(n, pairs), func(v int) int { return v % groups }
}

// nestedGraph has large groups of small ones: of a vertex's twelve edges, about seven stay in the small group
// and four in the large one.
func nestedGraph(large, small, size int, seed uint64) (g *Graph, largeOf func(v int) int) {
	n := large * small * size
	var pairs [][2]uint32
	for v := range n {
		for i := range uint64(6) {
			roll := randomMix(seed, uint64(v)*6+i)
			span := n
			switch pick := roll >> 32 % 24; {
			case pick < 14:
				span = size
			case pick < 22:
				span = small * size
			}
			pairs = append(pairs, [2]uint32{uint32(v), uint32(v/span*span + int(roll&0xffffff)%span)})
		}
	}
	return joined(n, pairs), func(v int) int { return v / (small * size) }
}

// starsGraph is stars, of that many leaves each.
func starsGraph(stars, leaves int) *Graph {
	var pairs [][2]uint32
	for s := range stars {
		for l := range leaves {
			pairs = append(pairs, [2]uint32{uint32(s), uint32(stars + s*leaves + l)})
		}
	}
	return joined(stars*(leaves+1), pairs)
}

// cliquesGraph is complete graphs without edges between them.
func cliquesGraph(cliques, size int) *Graph {
	var pairs [][2]uint32
	for c := range cliques {
		for a := range size {
			for b := range a {
				pairs = append(pairs, [2]uint32{uint32(a*cliques + c), uint32(b*cliques + c)})
			}
		}
	}
	return joined(cliques*size, pairs)
}

// cutOf is the weight of the edges between groups of vertices.
func cutOf(g *Graph, group func(v int) int) (sum int64) {
	for v := range g.vertices() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if group(v) != group(int(g.Indices[e])) {
				sum += int64(g.weightOf(e))
			}
		}
	}
	return sum / 2
}

func partCut(g *Graph, part []uint16) int64 {
	return cutOf(g, func(v int) int { return int(part[v]) })
}

var tolerances = []float64{1.05, 1.10, 1.10}

func multilevel(tb testing.TB, g *Graph, o Options) []uint16 {
	tb.Helper()
	if o.Tolerance == nil {
		o.Tolerance = tolerances[:g.Constraints]
	}
	part, err := Multilevel(tb.Context(), g, o)
	if err != nil {
		tb.Fatal(err)
	}
	return part
}

// overweight says which part is heavier than promised, and in which constraint; -1 if none is. Where a vertex
// weighs more than half a part, nothing is promised.
func overweight(g *Graph, part []uint16, o Options) (p, c int) {
	if o.Tolerance == nil {
		o.Tolerance = tolerances[:g.Constraints]
	}
	load := make([]int64, o.Parts*g.Constraints)
	for v, p := range part {
		for c := range g.Constraints {
			load[int(p)*g.Constraints+c] += int64(g.Weights[v*g.Constraints+c])
		}
	}
	most, lumpy := bounds(g, o)
	for c, most := range most {
		for p := range o.Parts {
			if load[p*g.Constraints+c] > most && !lumpy[c] {
				return p, c
			}
		}
	}
	return -1, -1
}
