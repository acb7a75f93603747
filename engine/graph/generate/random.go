package generate

import "math/bits"

// A purpose separates the random numbers of different uses.
type purpose uint64

const (
	forEdges purpose = 1 + iota
	forIDs
	forSplits
	forSizes
	forClasses
	forPrototypes
	forCommunityParts
	forNoise
	forLabels
)

const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of SplitMix64: every bit of x affects half of the result's bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func key(seed uint64, p purpose) uint64 { return mix(mix(seed+golden) + uint64(p)*golden) }

// A sequence is a SplitMix64 generator. Sequences of different indices are independent
// enough for graph generation.
type sequence struct{ state uint64 }

func at(key, index uint64) sequence { return sequence{mix(key ^ mix(index+golden))} }

func (s *sequence) next() uint64 {
	s.state += golden
	return mix(s.state)
}

// below returns a number uniform in [0, n), as far as 64 bits allow.
func (s *sequence) below(n uint64) uint64 {
	high, _ := bits.Mul64(s.next(), n)
	return high
}

// unit returns a number uniform in [0, 1).
func (s *sequence) unit() float64 { return unit(s.next()) }

func unit(random uint64) float64 { return float64(random>>11) * (1.0 / (1 << 53)) }

// normal approximates a standard normal variable: the sum of eight uniform bytes, bounded
// at 4.9.
func normal(random uint64) float32 {
	const mask = 0x00ff00ff00ff00ff
	pairs := random&mask + random>>8&mask
	sum := pairs * 0x0001000100010001 >> 48
	const mean, deviation = 8 * 127.5, 209.02152999
	return (float32(sum) - mean) * (1 / deviation)
}
