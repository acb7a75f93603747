package generate

import "math/bits"

const halfRounds = 6

// A permutation is a keyed pseudo-random permutation of 0..n-1 without a table: a Feistel
// network on the next power of two, iterated until the result is below n.
type permutation struct {
	n        uint64
	low      uint   // bits of the lower part
	lowMask  uint64 // of the lower part
	highMask uint64 // of the upper part, shifted down
	keys     [halfRounds]uint64
}

func newPermutation(n uint64, key uint64) permutation {
	width := uint(0)
	if n > 1 {
		width = uint(bits.Len64(n - 1))
	}
	p := permutation{n: n, low: width - width/2}
	p.lowMask = 1<<p.low - 1
	p.highMask = 1<<(width/2) - 1
	s := sequence{key}
	for i := range p.keys {
		p.keys[i] = s.next()
	}
	return p
}

func (p *permutation) round(i int, half uint64) uint64 {
	return (half ^ p.keys[i]) * golden >> 32
}

// of returns the image of x.
func (p *permutation) of(x uint64) uint64 {
	for {
		low, high := x&p.lowMask, x>>p.low
		for i := 0; i < halfRounds; i += 2 {
			low ^= p.round(i, high) & p.lowMask
			high ^= p.round(i+1, low) & p.highMask
		}
		x = high<<p.low | low
		if x < p.n {
			return x
		}
	}
}

// from is the inverse of of: of(from(y)) is y.
func (p *permutation) from(y uint64) uint64 {
	for {
		low, high := y&p.lowMask, y>>p.low
		for i := halfRounds - 2; i >= 0; i -= 2 {
			high ^= p.round(i+1, low) & p.highMask
			low ^= p.round(i, high) & p.lowMask
		}
		y = high<<p.low | low
		if y < p.n {
			return y
		}
	}
}
