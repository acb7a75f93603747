package partition

import "context"

// streamClusterLimit returns the maximum number of clusters: a few for each pair that the
// table holds, but enough of them for every part.
func streamClusterLimit(vertices uint32, halfEdges uint64, parts int) int {
	return int(min(uint64(vertices), uint64(max(streamPairSlots(halfEdges)/8, 2*clustersPerPart*parts))))
}

// pack grows clusters, cuts the graph of clusters by the multilevel method, and gives
// each vertex the part of its cluster.
func (s *streamer) pack() error {
	c := newStreamClusters(s)
	if err := c.grow(); err != nil {
		return err
	}
	c.number(streamClusterLimit(s.n, s.g.HalfEdges(), s.k))
	g, err := c.contract()
	if err != nil {
		return err
	}
	// A quarter of what may be uneven is left to the moves of single vertices.
	tight := make([]float64, s.c)
	for i, t := range s.o.Tolerance {
		tight[i] = 1 + (t-1)*0.75
	}
	part, err := Multilevel(s.ctx, g, Options{Parts: s.k, Seed: s.o.Seed, Tolerance: tight, Threads: s.o.Threads})
	if err != nil {
		return err
	}
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	s.label = make([]uint16, s.n)
	for v, l := range c.of {
		s.label[v] = streamNone
		if l != none {
			s.label[v] = part[l]
		}
	}
	for l, p := range part {
		s.add(p, g.Weights[l*s.c:(l+1)*s.c])
	}
	return nil
}

// contract reads the graph once more and returns the graph of clusters.
func (c *streamClusters) contract() (*Graph, error) {
	s := c.s
	pairs := newStreamPairs(streamPairSlots(s.g.HalfEdges()))
	weights := make([]uint32, c.count*s.c)
	next := uint32(0)
	err := s.g.Blocks(s.ctx, func(b Block) error {
		count, err := s.check(b, next)
		if err != nil {
			return err
		}
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		for i := range count {
			own := c.of[next+uint32(i)]
			if own == none {
				continue
			}
			for at, w := range b.Weights[i*s.c : (i+1)*s.c] {
				sum := &weights[int(own)*s.c+at]
				*sum = saturate(*sum, w)
			}
			for _, u := range b.Indices[b.Indptr[i]:b.Indptr[i+1]] {
				if u >= s.n {
					return s.noVertex(b)
				}
				// Each edge comes from both of its ends.
				if other := c.of[u]; own < other && other != none {
					pairs.add(own, other)
				}
			}
		}
		next += uint32(count)
		s.report(count)
		return nil
	})
	if err != nil {
		return nil, err
	}
	g := pairs.graph(c.count, s.c)
	g.Weights = weights
	return g, nil
}
