//go:build ignore

// Writes the kernels of rows for AVX-512.
package main

import "github.com/hopmesh/hopmesh/engine/tensor/gen/rows"

//gen:out ../cpu/rows/avx512

func main() {
	f := rows.Family{Prefix: "avx512", Wide: true}
	f.Kernels()
}
