package sample

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// inverseRoots are 1/sqrt(degree) of all vertices, made when first asked for.
type inverseRoots struct {
	once sync.Once
	of   []float32
}

// grain is how many vertices a goroutine takes at a time: a multiple of 64, so that
// no two write to one word of the loops.
const grain = 1 << 14

// SelfLoops is a bit for each vertex, set where the graph has an edge from it to
// itself. Nobody writes to it.
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

// Inverse is 1/sqrt(degree) of each vertex, with the self-loops that are added if
// selfLoops says so, 0 where the degree is not above 0. Nobody writes to it.
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

// loops says whether the graph has an edge from v to itself.
func (p *part) loops(v uint32) bool {
	if p.far != nil {
		row := v - p.first
		return p.far.Loops[row/64]>>(row%64)&1 != 0
	}
	sources, _ := p.row(v)
	_, ok := slices.BinarySearch(sources, int32(v))
	return ok
}

// inverse is 1/sqrt(degree) of v, with a self-loop if one is added. Where the row is
// elsewhere that was seen to there.
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

// each shows all vertices and their parts to do, which several goroutines call.
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
