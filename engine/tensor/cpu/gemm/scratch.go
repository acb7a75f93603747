package gemm

import "unsafe"

// A scratch is memory reused from product to product.
type scratch struct {
	base *float32 // 128-byte aligned
	held []float32
	size int
}

// grow makes room for n elements.
func (s *scratch) grow(n int) {
	if n <= s.size {
		return
	}
	s.size = n
	s.held = make([]float32, n+32) // so that the end stays inside, too
	s.base = &s.held[-(uintptr(unsafe.Pointer(&s.held[0]))/4)&31]
}
