package partition

import (
	"cmp"
	"slices"
)

// streamPackRounds is the number of rounds in which clusters may change parts after
// packing.
const streamPackRounds = 8

// streamPacker assigns clusters to parts.
type streamPacker struct {
	s     *streamer
	part  []uint16 // by cluster
	loads []uint64 // by part and constraint
	// The pairs of cluster i are at first[i] up to first[i+1].
	first   []int32
	pairs   []streamPair
	tied    []uint64 // by part: edges to the current cluster
	nothing []uint64 // no weight
}

// pack assigns clusters to parts, the heaviest first, each to the part with most edges to
// it, and relabels the vertices.
func (s *streamer) pack() {
	p := streamPacker{s: s, part: make([]uint16, s.clusters), loads: make([]uint64, s.k*s.c), tied: make([]uint64, s.k), nothing: make([]uint64, s.c)}
	p.both(s.pairs.sorted())
	order := make([]uint16, s.clusters)
	for i := range order {
		order[i], p.part[i] = uint16(i), streamNone
	}
	share := make([]float64, s.clusters)
	for i := range share {
		share[i], _ = s.fill(s.loads[i*s.c:], p.nothing)
	}
	slices.SortStableFunc(order, func(a, b uint16) int { return cmp.Compare(share[b], share[a]) })
	for range 1 + streamPackRounds {
		moved := false
		for _, cluster := range order {
			moved = p.place(cluster) || moved
		}
		if !moved {
			break
		}
	}
	for v, l := range s.label {
		if l != streamNone {
			s.label[v] = p.part[l]
		}
	}
	s.loads = append(s.loads[:0], p.loads...)
	s.pairs = nil
}

// both stores each pair at both of its clusters.
func (p *streamPacker) both(sorted []streamPair) {
	p.first = make([]int32, p.s.clusters+1)
	for _, pair := range sorted {
		p.first[pair.a]++
		p.first[pair.b]++
	}
	sum := int32(0)
	for i, n := range p.first {
		sum += n
		p.first[i] = sum
	}
	p.pairs = make([]streamPair, 2*len(sorted))
	for _, pair := range sorted {
		p.first[pair.a]--
		p.pairs[p.first[pair.a]] = pair
		p.first[pair.b]--
		p.pairs[p.first[pair.b]] = streamPair{pair.b, pair.a, pair.count}
	}
}

// fill returns load plus more relative to an even share and relative to the limit, each
// in its worst constraint.
func (s *streamer) fill(load, more []uint64) (even, limit float64) {
	for c, most := range s.limit {
		if sum := float64(load[c] + more[c]); sum > 0 {
			even = max(even, sum*float64(s.k)/float64(s.total[c]))
			limit = max(limit, sum/float64(most))
		}
	}
	return even, limit
}

// place moves a cluster to its best part, and reports whether that is a new one.
func (p *streamPacker) place(cluster uint16) bool {
	s := p.s
	weight := s.loads[int(cluster)*s.c : int(cluster+1)*s.c]
	old := p.part[cluster]
	if old != streamNone {
		load := p.loads[int(old)*s.c:]
		for c, w := range weight {
			load[c] -= w
		}
		if even, limit := s.fill(load, p.nothing); even < 0.5 && limit <= 1 {
			// Each part keeps at least half of a share.
			p.add(old, weight)
			return false
		}
	}
	clear(p.tied)
	total := 0.0
	for _, pair := range p.pairs[p.first[cluster]:p.first[cluster+1]] {
		total += float64(pair.count)
		if to := p.part[pair.b]; to != streamNone {
			p.tied[to] += uint64(pair.count)
		}
	}
	best, suits, most := 0, -1, 0.0
	for part, tied := range p.tied {
		load := p.loads[part*s.c:]
		even, limit := s.fill(load, weight)
		suit, score := 0, -limit // only if no part has room
		switch {
		case limit > 1:
		case old != streamNone:
			suit, score = 2, float64(tied)+float64(1e-3*(1-limit))
		case even > 1:
			suit, score = 1, float64(tied)
		default:
			// What random placement would yield is subtracted, so that the first clusters
			// go to parts of their own unless they have many edges in common.
			already, _ := s.fill(load, p.nothing)
			suit, score = 2, float64(tied)-float64((total+1)*already/float64(s.k))
		}
		if suit > suits || suit == suits && score > most {
			best, suits, most = part, suit, score
		}
	}
	p.add(uint16(best), weight)
	p.part[cluster] = uint16(best)
	return uint16(best) != old
}

func (p *streamPacker) add(part uint16, weight []uint64) {
	load := p.loads[int(part)*p.s.c:]
	for c, w := range weight {
		load[c] += w
	}
}
