package partition

import "math/bits"

// streamPairs records the number of edges between clusters in a table of fixed size. Each
// pair may be in a few neighbouring slots; when these are taken, the pair with the lowest
// count gives way, so that the important ones stay.
type streamPairs struct {
	slots []streamPair
	shift uint
}

type streamPair struct {
	a, b  uint32 // a < b
	count uint32 // 0: free
}

const (
	streamPairBytes = 12
	streamPairReach = 8
	streamPairLeast = 1 << 15 // slots
	streamPairMost  = 1 << 22
	streamPairShare = 128 // half-edges of the graph for each slot
)

// streamPairSlots returns the size of the table: what an eighth of the edges take is
// shared by the table, the cluster graph made of it, and the work on that.
func streamPairSlots(halfEdges uint64) int {
	n := min(max(halfEdges/streamPairShare, streamPairLeast), streamPairMost)
	return 1 << (bits.Len64(n) - 1)
}

func newStreamPairs(slots int) *streamPairs {
	return &streamPairs{make([]streamPair, slots), uint(64 - bits.Len(uint(slots-1)))}
}

// add counts an edge between two clusters.
func (p *streamPairs) add(a, b uint32) {
	at := (uint64(a)<<32 | uint64(b)) * randomOdd >> p.shift
	at &^= streamPairReach - 1
	reach := p.slots[at : at+streamPairReach : at+streamPairReach]
	least := 0
	for i := range reach {
		s := &reach[i]
		if s.a == a && s.b == b && s.count > 0 {
			s.count += min(1, ^s.count)
			return
		}
		if s.count < reach[least].count {
			least = i
		}
	}
	if s := &reach[least]; s.count <= 1 {
		*s = streamPair{a, b, 1}
	} else {
		s.count--
	}
}

// graph returns the clusters as vertices and the recorded pairs as edges.
func (p *streamPairs) graph(clusters, constraints int) *Graph {
	g := &Graph{Indptr: make([]int64, clusters+1), Constraints: constraints}
	for _, s := range p.slots {
		if s.count > 0 {
			g.Indptr[s.a]++
			g.Indptr[s.b]++
		}
	}
	sum := int64(0)
	for i, n := range g.Indptr {
		sum += n
		g.Indptr[i] = sum
	}
	g.Indices, g.EdgeWeights = make([]uint32, sum), make([]uint32, sum)
	for _, s := range p.slots {
		if s.count > 0 {
			g.Indptr[s.a]--
			g.Indices[g.Indptr[s.a]], g.EdgeWeights[g.Indptr[s.a]] = s.b, s.count
			g.Indptr[s.b]--
			g.Indices[g.Indptr[s.b]], g.EdgeWeights[g.Indptr[s.b]] = s.a, s.count
		}
	}
	return g
}
