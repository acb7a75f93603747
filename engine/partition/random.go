package partition

import (
	"math/bits"
	"runtime"
	"sync"
)

// Random assigns each vertex a random part; the sizes of parts differ by at most one. A
// vertex's part is its position in a shuffle keyed by the seed, modulo parts, which must
// be from 1 to MaxParts.
func Random(vertices uint32, parts int, seed uint64) []uint16 {
	part := make([]uint16, vertices)
	shuffle := newRandomShuffle(vertices, seed)
	workers := uint64(max(1, runtime.GOMAXPROCS(0)))
	var running sync.WaitGroup
	for w := range workers {
		from, to := uint64(vertices)*w/workers, uint64(vertices)*(w+1)/workers
		running.Go(func() {
			for v := from; v < to; v++ {
				part[v] = uint16(shuffle.of(uint32(v)) % uint32(parts))
			}
		})
	}
	running.Wait()
	return part
}

// randomShuffle is a permutation of 0..n-1 without a table: a Feistel network on the next
// power of two, iterated until the result is below n.
type randomShuffle struct {
	n                 uint32
	low               uint
	lowMask, highMask uint32
	keys              [6]uint64
}

func newRandomShuffle(n uint32, seed uint64) randomShuffle {
	width := uint(0)
	if n > 1 {
		width = uint(bits.Len32(n - 1))
	}
	s := randomShuffle{n: n, low: width - width/2}
	s.lowMask, s.highMask = 1<<s.low-1, 1<<(width/2)-1
	for i := range s.keys {
		s.keys[i] = randomMix(seed, uint64(i))
	}
	return s
}

func (s *randomShuffle) of(x uint32) uint32 {
	for {
		low, high := x&s.lowMask, x>>s.low
		for i := 0; i < len(s.keys); i += 2 {
			low ^= randomRound(high, s.keys[i]) & s.lowMask
			high ^= randomRound(low, s.keys[i+1]) & s.highMask
		}
		x = high<<s.low | low
		if x < s.n {
			return x
		}
	}
}

const randomOdd = 0x9e3779b97f4a7c15

func randomRound(half uint32, key uint64) uint32 {
	return uint32((uint64(half) ^ key) * randomOdd >> 32)
}

// randomMix hashes the seed and a number with SplitMix64's finaliser.
func randomMix(seed, number uint64) uint64 {
	x := seed ^ (number+1)*randomOdd
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
