package generate

import "math/bits"

// The quadrants' probabilities, from Graph 500.
const rmatA, rmatB, rmatC = 0.57, 0.19, 0.19

// rmat draws each edge's two ends bit by bit: a quadrant of the adjacency matrix, a
// quadrant of that, and so on. This yields hubs that are connected to hubs. What is drawn
// is a position; ids are permuted positions.
//
// An R-MAT graph has no classes of its own: beyond what hubs explain, edges do not favour
// the diagonal. Classes are planted: each run of Classes positions holds each class once,
// and an edge into such a run is redirected to the position with its source's class, with
// the probability that yields the requested homophily.
type rmat struct {
	n         uint64
	ids       permutation
	key       uint64
	levels    int // of four bits each
	spare     int // surplus low bits
	table     [256]aliasEntry
	classes   uint64 // 0: none
	classKey  uint64
	homophily float64 // share of edges that are redirected
}

// An aliasEntry stands for four levels: eight bits, of which the upper four are the
// source's. A coin below keep selects the entry itself, otherwise other.
type aliasEntry struct {
	keep  uint32 // out of 2^24
	other uint8
}

func newRMAT(o Options, ids permutation) *rmat {
	width := bits.Len64(uint64(o.Vertices) - 1)
	r := &rmat{n: uint64(o.Vertices), ids: ids, key: key(o.Seed, forEdges), levels: (width + 3) / 4,
		classes: uint64(o.Classes), classKey: key(o.Seed, forClasses)}
	r.spare = r.levels*4 - width
	if o.Classes > 1 {
		chance := 1 / float64(o.Classes)
		r.homophily = max(0, (o.Homophily-chance)/(1-chance))
	}
	r.table = fourLevels()
	return r
}

// fourLevels builds Vose's alias table of the 256 paths through four levels.
func fourLevels() (table [256]aliasEntry) {
	share := [4]float64{rmatA, rmatB, rmatC, 1 - rmatA - rmatB - rmatC}
	var p [256]float64
	var small, large []int
	for i := range p {
		p[i] = 256
		for level := range 4 {
			p[i] *= share[i>>(4+level)&1<<1|i>>level&1]
		}
		if p[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		table[s] = aliasEntry{uint32(p[s] * (1 << 24)), uint8(l)}
		if p[l] -= 1 - p[s]; p[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) { // only rounding errors are left
		table[i] = aliasEntry{1 << 24, uint8(i)}
	}
	return table
}

func (r *rmat) draw(first uint64, src, dst []uint32) {
	for i := range src {
		s, d := r.edge(first + uint64(i))
		src[i], dst[i] = uint32(r.ids.of(s)), uint32(r.ids.of(d))
	}
}

func (r *rmat) edge(index uint64) (src, dst uint64) {
	random := at(r.key, index)
	for range attempts {
		src, dst = r.ends(&random)
		if src >= r.n || dst >= r.n {
			continue
		}
		if r.homophily > 0 && random.unit() < r.homophily {
			dst = r.withClass(dst, r.classOf(src))
		}
		if src != dst {
			return src, dst
		}
	}
	src = random.below(r.n)
	return src, (src + 1) % r.n
}

// attempts bounds how often an edge is redrawn because a simple graph can't have it. Only
// tiny graphs come near it.
const attempts = 256

func (r *rmat) ends(random *sequence) (src, dst uint64) {
	var word uint64
	for level := range r.levels {
		if level%2 == 0 {
			word = random.next()
		}
		i := uint8(word)
		if e := &r.table[i]; uint32(word>>8)&(1<<24-1) >= e.keep {
			i = e.other
		}
		word >>= 32
		src, dst = src<<4|uint64(i>>4), dst<<4|uint64(i&15)
	}
	return src >> r.spare, dst >> r.spare
}

// classOf returns a position's class: its offset in its run, rotated by the run.
func (r *rmat) classOf(position uint64) uint64 {
	run := position / r.classes
	return (position - run*r.classes + r.turn(run)) % r.classes
}

func (r *rmat) turn(run uint64) uint64 { return mix(r.classKey^run) >> 32 }

// withClass returns the position in the same run that has a class, or the position itself
// if the last run lacks the class.
func (r *rmat) withClass(position, class uint64) uint64 {
	run := position / r.classes
	moved := run*r.classes + (class+r.classes-r.turn(run)%r.classes)%r.classes
	if moved >= r.n {
		return position
	}
	return moved
}

func (r *rmat) class(vertex uint64) int { return int(r.classOf(r.ids.from(vertex))) }

// community returns 0: there are no communities.
func (r *rmat) community(uint64) int { return 0 }
