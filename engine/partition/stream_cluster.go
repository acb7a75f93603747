package partition

import "math"

const (
	streamSample = 8192 // neighbours of a vertex that are examined while clusters grow
	// How many of the heaviest clusters make a part. More of them are cut better, as long as
	// the table holds all pairs that matter: in small graphs it does.
	streamClusterShare      = 8
	streamClusterShareSmall = 32
	streamUnits             = 1 << 30 // weight of all vertices together, rounding aside
)

// streamClusters is the state while clusters grow.
type streamClusters struct {
	s      *streamer
	of     []uint32 // by vertex: its cluster, named by one of its vertices, later a number
	weight []uint32 // by cluster, in streamUnits
	limit  uint32
	count  int // clusters, once they are numbered
}

// newStreamClusters puts each vertex into a cluster of its own. A cluster's weight is its
// share of the vertices or that of the edges, whichever is more, added up vertex by
// vertex: that is never less than either.
func newStreamClusters(s *streamer) *streamClusters {
	c := &streamClusters{s: s, of: make([]uint32, s.n), weight: make([]uint32, s.n)}
	for v := range c.of {
		c.of[v] = uint32(v)
	}
	share := streamClusterShare
	if s.g.HalfEdges() <= streamPairLeast*streamPairShare {
		share = streamClusterShareSmall
	}
	c.limit = uint32(max(1, streamUnits/(share*s.k)))
	return c
}

// grow runs the passes in which each vertex moves to the cluster of most of its
// neighbours, as long as that has room, until hardly any vertex moves.
func (c *streamClusters) grow() error {
	s := c.s
	perVertex := float64(streamUnits) / float64(s.n)
	perEdge := float64(streamUnits) / math.Max(1, float64(s.g.HalfEdges()))
	for i := range streamClusterPasses {
		if err := s.pass(c.choose, func(v uint32, weights []uint32, degree int, choice *streamChoice) {
			units := uint32(max(1, perVertex, perEdge*float64(degree)))
			if i == 0 {
				// Nobody has left or joined this vertex's own cluster uncounted: those who
				// joined it before have added their own weight.
				c.weight[v] += units
				for at, w := range weights {
					s.total[at] += uint64(w)
					s.largest[at] = max(s.largest[at], uint64(w))
				}
			}
			own := c.of[v]
			for j, to := range choice.wide {
				if to == none || choice.count[j] < choice.own || choice.count[j] == choice.own && c.weight[own] > units {
					return
				}
				if uint64(c.weight[to])+uint64(units) <= uint64(c.limit) {
					c.weight[own] -= units
					c.weight[to] += units
					c.of[v] = to
					s.moved++
					return
				}
			}
		}); err != nil {
			return err
		}
		if s.moved < s.n/streamSettled {
			break
		}
	}
	s.setLimits()
	return nil
}

// choose finds the clusters that most of a vertex's neighbours are in.
func (c *streamClusters) choose(w *streamWorker, v uint32, row []uint32, choice *streamChoice) {
	step := 1
	if len(row) > streamSample {
		step = (len(row) + streamSample - 1) / streamSample
	}
	t := w.tally
	t.expect(min(len(row), streamSample))
	w.wrong = !t.addEach(row, c.of, step)
	*choice = streamChoice{wide: [3]uint32{none, none, none}}
	own, turn := c.of[v], uint32(randomMix(c.s.o.Seed, uint64(v)))|1
	var top [3]uint64
	for i, l := range t.keys {
		if l == own {
			choice.own = t.sums[i]
			continue
		}
		// The count, then some random bits; equals stay in their order.
		rank := uint64(t.sums[i])<<32 | uint64(l*turn)
		switch {
		case rank <= top[2]:
		case rank > top[0]:
			top[0], top[1], top[2] = rank, top[0], top[1]
			choice.wide[0], choice.wide[1], choice.wide[2] = l, choice.wide[0], choice.wide[1]
		case rank > top[1]:
			top[1], top[2] = rank, top[1]
			choice.wide[1], choice.wide[2] = l, choice.wide[1]
		default:
			top[2] = rank
			choice.wide[2] = l
		}
	}
	for i, rank := range top {
		choice.count[i] = uint32(rank >> 32)
	}
	t.reset()
}

// number numbers the clusters, the heaviest of them if there are more than most. The
// vertices of the others belong to none from here on.
func (c *streamClusters) number(most int) {
	least := uint32(1)
	if c.heavier(1) > most {
		low, high := uint32(1), uint32(math.MaxUint32) // too many, few enough
		for high-low > 1 {
			if middle := low + (high-low)/2; c.heavier(middle) > most {
				low = middle
			} else {
				high = middle
			}
		}
		least = high
	}
	for l, w := range c.weight {
		c.weight[l] = none
		if w >= least {
			c.weight[l] = uint32(c.count)
			c.count++
		}
	}
	for v, l := range c.of {
		c.of[v] = c.weight[l]
	}
	c.weight = nil
}

// heavier counts the clusters of at least that weight.
func (c *streamClusters) heavier(least uint32) (n int) {
	for _, w := range c.weight {
		if w >= least {
			n++
		}
	}
	return n
}
