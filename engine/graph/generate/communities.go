package generate

import "math"

// communities divides the positions 0..n-1 into runs.
type communities struct {
	first   []uint32 // of each community, then the end of the last
	roots   []rankRoots
	guide   []uint32 // the community at the start of each range of 2^shift positions
	shift   uint
	classes int
}

// rankRoots holds precomputed values for vertex: the cube root of the first rank's place
// on the scale on which ranks are uniform, and the distance to the last rank's.
type rankRoots struct{ low, span, offset float64 }

// flattest bounds the largest degrees, at about a hundred times the average: the hub of n
// vertices is drawn like the n/flattest-th of an unbounded power law.
const flattest = 5000

func newCommunities(o Options) *communities {
	k, n := o.Communities, uint64(o.Vertices)
	c := &communities{first: make([]uint32, k+1), roots: make([]rankRoots, k), classes: o.Classes}
	// Sizes vary from half to twice the usual one; each community has at least one
	// vertex.
	sizes := key(o.Seed, forSizes)
	share := func(i int) float64 { return 0.5 + float64(1.5*unit(mix(sizes^uint64(i)))) }
	total, sum := 0.0, 0.0
	for i := range k {
		total += share(i)
	}
	for i := range k {
		c.first[i] = uint32(i) + uint32(float64(n-uint64(k))*sum/total)
		sum += share(i)
	}
	c.first[k] = uint32(n)
	for i := range k {
		size := float64(c.first[i+1] - c.first[i])
		offset := 1 + size/flattest
		low := math.Cbrt(offset)
		c.roots[i] = rankRoots{low, math.Cbrt(offset+size) - low, offset}
	}
	for n>>c.shift > uint64(4*k) {
		c.shift++
	}
	c.guide = make([]uint32, n>>c.shift+1)
	at := 0
	for i := range c.guide {
		for uint64(c.first[at+1]) <= uint64(i)<<c.shift && at+1 < k {
			at++
		}
		c.guide[i] = uint32(at)
	}
	return c
}

// of returns the community of a position.
func (c *communities) of(position uint64) int {
	i := int(c.guide[position>>c.shift])
	for uint64(c.first[i+1]) <= position {
		i++
	}
	return i
}

// run returns the range of a community's positions.
func (c *communities) run(i int) (first, end uint64) {
	return uint64(c.first[i]), uint64(c.first[i+1])
}

// vertex returns the position in a community that corresponds to a number drawn from [0,
// 1).
func (c *communities) vertex(i int, drawn float64) uint64 {
	r := &c.roots[i]
	x := r.low + float64(drawn*r.span) // conversions prevent fused multiply-add, which only some processors use
	rank := max(0, float64(x*x*x)-r.offset)
	first, end := c.run(i)
	return min(first+uint64(rank), end-1)
}

func (c *communities) class(i int) int { return i * c.classes / (len(c.first) - 1) }

// classRun returns the range of communities that have the class of i.
func (c *communities) classRun(i int) (first, end uint64) {
	if c.classes == 0 {
		return 0, uint64(c.first[len(c.first)-1])
	}
	k, class := len(c.first)-1, c.class(i)
	from := (class*k + c.classes - 1) / c.classes
	to := ((class+1)*k + c.classes - 1) / c.classes
	return uint64(c.first[from]), uint64(c.first[to])
}
