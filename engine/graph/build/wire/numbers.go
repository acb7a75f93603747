package wire

import (
	"encoding/binary"
	"unsafe"
)

// Elements returns bytes from a message as numbers, in place if they lie well.
func Elements[T uint16 | uint32 | int32](b []byte) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if len(b)%size != 0 {
		return nil, ErrMessage
	}
	first := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(first)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(first), len(b)/size), nil
	}
	out := make([]T, len(b)/size)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), len(b)), b)
	return out, nil
}

// Finite returns an error unless all weights are numbers.
func Finite(weights []float32) error {
	for _, w := range weights {
		if w-w != 0 {
			return ErrMessage
		}
	}
	return nil
}

// FiniteBytes reports whether features, bf16 or f32, are numbers.
func FiniteBytes(b []byte, bf16 bool) bool {
	exponents := uint64(0x7f80_0000_7f80_0000)
	if bf16 {
		exponents = 0x7f80_7f80_7f80_7f80
	}
	// Adding the lowest bit of an exponent carries into the sign if all of it are set.
	lowest, signs := exponents&^(exponents<<1), ^exponents&(exponents<<1)
	wrong, rest := uint64(0), [8]byte{}
	for ; len(b) >= 8; b = b[8:] {
		wrong |= binary.LittleEndian.Uint64(b)&exponents + lowest
	}
	copy(rest[:], b)
	wrong |= binary.LittleEndian.Uint64(rest[:])&exponents + lowest
	return wrong&signs == 0
}
