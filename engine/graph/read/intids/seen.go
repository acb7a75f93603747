package intids

// Seen remembers small ids, so that each is sent to another node once.
type Seen struct{ bits []uint64 }

// maxSeen bounds the ids that are remembered, in 32 MiB.
const maxSeen = 1 << 28

// Only keeps the ids that are new, or too large to be remembered, in place.
func (s *Seen) Only(ids []int64) []int64 {
	n := 0
	for _, v := range ids {
		if uint64(v) < maxSeen {
			word := uint64(v) / 64
			if held := uint64(len(s.bits)); word >= held {
				s.bits = append(s.bits, make([]uint64, max(1024, word+1-held, held/2))...)
			}
			if s.bits[word]>>(v%64)&1 == 1 {
				continue
			}
			s.bits[word] |= 1 << (v % 64)
		}
		ids[n] = v
		n++
	}
	return ids[:n]
}
