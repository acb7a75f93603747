package graph

import "math"

// ToBF16 rounds each number to the nearest BF16, ties to even. to must be as long as
// from.
func ToBF16(to []uint16, from []float32) {
	to = to[:len(from)]
	for i, f := range from {
		bits := math.Float32bits(f)
		if f != f {
			bits |= 1 << 22 // keep it a NaN, whatever bits are cut off
		} else {
			bits += 0x7fff + bits>>16&1
		}
		to[i] = uint16(bits >> 16)
	}
}

// FromBF16 returns the number, which is exact.
func FromBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }
