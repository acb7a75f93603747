package sample

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// inverseRoots holds 1/sqrt(degree) of all vertices, computed on first use.
type inverseRoots struct {
	once sync.Once
	of   []float32
}

// grain is the number of vertices that a goroutine takes at a time: a multiple of 64, so
// that no two write to the same word of the loops.
const grain = 1 << 14

// SelfLoops returns a bit for each vertex, set if the graph has an edge from it to
// itself. It must not be modified.
func (t *Topology) SelfLoops() []uint64 {
	t.loops.once.Do(func() {
		of := make([]uint64, (t.vertices+63)/64)
		t.each(func(p *part, v uint32) {
			if p.loops(v) {
				of[v/64] |= 1 << (v % 64)
			}
		})
		t.loops.of = of
	})
	return t.loops.of
}

// Inverse returns 1/sqrt(degree) of each vertex, 0 if the degree is not positive. With
// selfLoops it counts the added self-loops. It must not be modified.
func (t *Topology) Inverse(selfLoops bool) []float32 {
	if t.whole != nil {
		return t.whole.Inverse(selfLoops)
	}
	to := &t.plain
	var loops []uint64
	if selfLoops {
		to, loops = &t.looped, t.SelfLoops()
	}
	to.once.Do(func() {
		of := inLargePages[float32](t.vertices)
		t.each(func(p *part, v uint32) {
			of[v] = p.inverse(v, selfLoops && loops[v/64]>>(v%64)&1 == 0)
		})
		to.of = of
	})
	return to.of
}

// loops reports whether the graph has an edge from v to itself.
func (p *part) loops(v uint32) bool {
	if p.far != nil {
		row := v - p.first
		return p.far.Loops[row/64]>>(row%64)&1 != 0
	}
	sources, _ := p.row(v)
	_, ok := slices.BinarySearch(sources, int32(v))
	return ok
}

// inverse returns 1/sqrt(degree) of v, with a self-loop if one is added. For a remote row
// the summary already accounts for that.
func (p *part) inverse(v uint32, added bool) float32 {
	if p.far != nil {
		return p.far.Inverse[v-p.first]
	}
	sources, weights := p.row(v)
	degree := float64(len(sources))
	if weights != nil {
		degree = 0
		for _, w := range weights {
			degree += float64(w)
		}
	}
	if added {
		degree++
	}
	if degree > 0 {
		return float32(1 / math.Sqrt(degree))
	}
	return 0
}

// each calls do for all vertices and their parts, on several goroutines.
func (t *Topology) each(do func(p *part, v uint32)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), t.vertices/grain+1) {
		all.Go(func() {
			for {
				first := int(next.Add(grain)) - grain
				if first >= t.vertices {
					return
				}
				p := t.of(uint32(first))
				for v := uint32(first); v < uint32(min(first+grain, t.vertices)); v++ {
					for v >= t.parts[p].end {
						p++
					}
					do(&t.parts[p], v)
				}
			}
		})
	}
	all.Wait()
}
