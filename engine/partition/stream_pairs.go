package partition

import "slices"

// streamPairs records the number of edges between clusters in a table of fixed size. Each
// pair may be in a few neighbouring slots; when these are taken, the pair with the lowest
// count is evicted, so that the important ones stay.
type streamPairs struct{ slots []streamPair }

type streamPair struct {
	a, b  uint16 // a < b
	count uint32 // 0: free
}

const (
	streamPairSlots = 1 << 18
	streamPairBytes = 8
	streamPairReach = 4
)

func newStreamPairs() *streamPairs { return &streamPairs{make([]streamPair, streamPairSlots)} }

func (p *streamPairs) clear() { clear(p.slots) }

// note adds a vertex's edges from its own label to its other choices.
func (p *streamPairs) note(own uint16, choice *streamChoice) {
	if own == streamNone {
		return
	}
	for i, l := range choice.label {
		if l == streamNone {
			return
		}
		if l != own {
			p.add(min(own, l), max(own, l), choice.count[i])
		}
	}
}

func (p *streamPairs) add(a, b uint16, count uint32) {
	at := (uint64(a)<<16 | uint64(b)) * randomOdd >> (64 - 18)
	at &^= streamPairReach - 1
	reach := p.slots[at : at+streamPairReach]
	least := 0
	for i := range reach {
		if s := &reach[i]; s.count > 0 && s.a == a && s.b == b {
			s.count += min(count, ^s.count)
			return
		}
		if reach[i].count < reach[least].count {
			least = i
		}
	}
	if s := &reach[least]; s.count <= count {
		*s = streamPair{a, b, count}
	} else {
		s.count -= count
	}
}

// sorted moves the recorded pairs to the front, sorted by a, then b.
func (p *streamPairs) sorted() []streamPair {
	all := slices.DeleteFunc(p.slots, func(s streamPair) bool { return s.count == 0 })
	slices.SortFunc(all, func(x, y streamPair) int {
		return int(x.a)<<16 + int(x.b) - int(y.a)<<16 - int(y.b)
	})
	return all
}
