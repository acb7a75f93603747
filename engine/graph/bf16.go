package graph

import "math"

// ToBF16 rounds each number to the nearest of type BF16, to the even one of two that
// are equally near. to has room for all.
func ToBF16(to []uint16, from []float32) {
	to = to[:len(from)]
	for i, f := range from {
		bits := math.Float32bits(f)
		if f != f {
			bits |= 1 << 22 // stays a NaN, whatever is cut off
		} else {
			bits += 0x7fff + bits>>16&1
		}
		to[i] = uint16(bits >> 16)
	}
}
