// Package keyed generates pseudo-random numbers from their purpose: seed, epoch, step,
// layer, vertex. The same key gives the same numbers on any machine, in any order and on
// any number of threads, which makes a step a pure function.
//
// It uses 64-bit and 32-bit integer arithmetic only, so that assembly and GPUs compute
// the same. Its results never change: tests hold frozen vectors.
package keyed

import "math/bits"

// A Key is a node in the tree of all random numbers of a run.
type Key uint64

// A Purpose separates the random numbers of different uses. Its values never change once
// released.
type Purpose uint64

// The purposes.
const (
	Initial  Purpose = 1 // initial weights
	Order    Purpose = 2 // order of the training vertices in an epoch
	Neighbor Purpose = 3 // neighbours drawn for a vertex
	Dropout  Purpose = 4
	Sweep    Purpose = 5  // order of shards through groups
	Halo     Purpose = 6  // sample of what a group sees of others
	Chunks   Purpose = 8  // order of the chunks in an epoch of pipe
	Boundary Purpose = 9  // rows of other parts that an epoch of pipe samples
	Split    Purpose = 10 // parts of a split that pairs of vertices are in
	Negative Purpose = 11 // vertices that stand in place of a pair's target
	Learnt   Purpose = 12 // initial rows of vertices
)

// New returns the root of all keys of one purpose under one seed.
func New(seed uint64, p Purpose) Key { return Key(0).With(seed).With(uint64(p)) }

// With returns the child key with this number. Numbers are absorbed one after the other:
// With(a).With(b) and With(b).With(a) are unrelated.
func (k Key) With(x uint64) Key {
	// SplitMix64's output at position x+1 of the sequence that starts at k.
	z := uint64(k) + (x+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return Key(z ^ z>>31)
}

// Draws returns the sequence of this key.
func (k Key) Draws() Sequence { return Sequence(k) }

// A Sequence is a wyrand generator.
type Sequence uint64

// Next returns the next 64 bits.
func (s *Sequence) Next() uint64 {
	*s += 0xa0761d6478bd642f
	high, low := bits.Mul64(uint64(*s), uint64(*s)^0xe7037ed1a0b428db)
	return high ^ low
}

// Below returns a number below n, which must not be 0. Its bias is below n/2^64.
func (s *Sequence) Below(n uint64) uint64 {
	high, _ := bits.Mul64(s.Next(), n)
	return high
}

// Float64 returns a number in [0, 1).
func (s *Sequence) Float64() float64 { return float64(s.Next()>>11) * 0x1p-53 }

// Column returns the 32 bits of one column under the key of a row. It hashes the column
// instead of advancing a sequence, so columns can be computed in any order.
func (k Key) Column(column uint32) uint32 {
	h := uint32(k) + column*0x9e3779b9
	h ^= uint32(k >> 32)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// Threshold returns the value that Column is below with this probability.
func Threshold(probability float64) uint32 {
	t := probability * (1 << 32)
	switch {
	case t <= 0:
		return 0
	case t >= 1<<32-1:
		return 1<<32 - 1
	}
	return uint32(t)
}
