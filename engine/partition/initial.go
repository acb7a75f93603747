package partition

import (
	"math"
	"math/bits"
	"sync"
)

const (
	initialTolerance = 0.6    // minimum power of the remaining tolerance that a bisection uses
	initialRepeats   = 8      // maximum repeats of the first bisection; each further level has half as many
	initialParts     = 2      // parts per repeat
	initialEdges     = 600000 // edges examined over all repeats
)

// initial cuts a small graph into parts by recursive bisection, so that neighbouring part
// numbers belong together.
type initial struct {
	crew  crew
	part  []uint16
	parts int
	most  []int64       // limit of one part
	busy  chan struct{} // a token for each goroutine beyond the first
	done  sync.WaitGroup
}

func initialPartition(c crew, g *Graph, parts int, most []int64, seed uint64) []uint16 {
	i := &initial{
		crew: c.alone(), part: make([]uint16, g.vertices()), parts: parts, most: most,
		busy: make(chan struct{}, c.workers-1),
	}
	i.cut(g, nil, 0, parts, seed)
	i.done.Wait()
	return i.part
}

// cut assigns the vertices of g parts from first on. names are their numbers in the whole
// graph, nil if they are the same.
func (i *initial) cut(g *Graph, names []uint32, first, parts int, seed uint64) {
	if parts == 1 {
		for v := range g.vertices() {
			i.part[nameOf(names, v)] = uint16(first)
		}
		return
	}
	left := (parts + 1) / 2
	side := i.bisect(g, left, parts, seed)
	if i.crew.ctx.Err() != nil {
		return
	}
	half, halfNames := extract(g, names, side, 0)
	other, otherNames := extract(g, names, side, 1)
	select {
	case i.busy <- struct{}{}:
		i.done.Go(func() {
			i.cut(other, otherNames, first+left, parts-left, randomMix(seed, 1))
			<-i.busy
		})
		i.cut(half, halfNames, first, left, randomMix(seed, 0))
	default:
		i.cut(half, halfNames, first, left, randomMix(seed, 0))
		i.cut(other, otherNames, first+left, parts-left, randomMix(seed, 1))
	}
}

// bisect cuts g, which is to have that many parts, so that left of them are on side 0.
// The first cuts matter most and refinement of the parts will not improve them, so they
// are repeated several times.
func (i *initial) bisect(g *Graph, left, parts int, seed uint64) (best []uint8) {
	depth := bits.Len(uint(i.parts-1)) - bits.Len(uint(parts-1))
	repeats := min(min(initialRepeats, i.parts/initialParts)>>depth, initialEdges/(len(g.Indices)+1))
	most := i.bounds(g, left, parts)
	bestExcess, bestCut := math.Inf(1), int64(0)
	for repeat := range max(1, repeats) {
		side, excess, cut := bisect(i.crew, g, float64(left)/float64(parts), most, randomMix(seed, uint64(repeat+2)))
		if excess < bestExcess || excess == bestExcess && cut < bestCut {
			best, bestExcess, bestCut = side, excess, cut
		}
	}
	return best
}

// bounds returns the limits of a bisection's sides. The remaining tolerance could be
// shared evenly by the bisections to come; but the first ones, which are few, need it
// most.
func (i *initial) bounds(g *Graph, left, parts int) (most [2][]int64) {
	power := math.Max(initialTolerance, 1/float64(bits.Len(uint(parts-1))))
	for c, total := range g.totals() {
		slack := 1.0
		if total > 0 {
			slack = math.Pow(math.Max(1, float64(i.most[c])*float64(parts)/float64(total)), power)
		}
		for side, count := range [2]int{left, parts - left} {
			share := float64(total) * float64(count) / float64(parts)
			most[side] = append(most[side], int64(math.Ceil(share*slack)))
		}
	}
	return most
}

func nameOf(names []uint32, v int) uint32 {
	if names == nil {
		return uint32(v)
	}
	return names[v]
}

// extract returns the graph of one side's vertices and their numbers in the whole graph.
func extract(g *Graph, names []uint32, side []uint8, which uint8) (*Graph, []uint32) {
	number := make([]uint32, len(side))
	var count uint32
	var edges int64
	for v, s := range side {
		if s == which {
			number[v] = count
			count++
			edges += g.degree(uint32(v))
		}
	}
	to := &Graph{
		Constraints: g.Constraints,
		Indptr:      make([]int64, 1, count+1),
		Indices:     make([]uint32, 0, edges),
		EdgeWeights: make([]uint32, 0, edges),
		Weights:     make([]uint32, 0, int(count)*g.Constraints),
	}
	called := make([]uint32, 0, count)
	for v, s := range side {
		if s != which {
			continue
		}
		called = append(called, nameOf(names, v))
		to.Weights = append(to.Weights, g.Weights[v*g.Constraints:][:g.Constraints]...)
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if u := g.Indices[e]; side[u] == which {
				to.Indices = append(to.Indices, number[u])
				to.EdgeWeights = append(to.EdgeWeights, g.weightOf(e))
			}
		}
		to.Indptr = append(to.Indptr, int64(len(to.Indices)))
	}
	return to, called
}
