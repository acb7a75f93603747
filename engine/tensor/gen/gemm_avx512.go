//go:build ignore

// Writes the kernels of dense products for AVX-512.
package main

import (
	. "github.com/mmcloughlin/avo/build"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/sweep"
)

//gen:out ../cpu/gemm/avx512

func main() {
	sweep.Each(sweep.AVX512(), sweep.HalfAVX512())
	Generate()
}
