//go:build ignore

// Writes the kernels of rows for AVX2.
package main

import "github.com/hopmesh/hopmesh/engine/tensor/gen/rows"

//gen:out ../cpu/rows/avx2

func main() {
	f := rows.Family{Prefix: "avx2", Wide: false}
	f.Kernels()
}
