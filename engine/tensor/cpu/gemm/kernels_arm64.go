package gemm

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

// The kernels have one width: they have code for panels with fewer columns.
var neon = kernels{transpose: neonTranspose, add: neonAdd, widths: []width{
	{16, []kernel{
		{6, neonRows6x16, neonColumns6x16},
		{4, neonRows4x16, neonColumns4x16},
		{2, neonRows2x16, neonColumns2x16},
		{1, neonRows1x16, neonColumns1x16},
	}},
}}

// forBF16 is never called: no family here multiplies BF16.
func forBF16() *kernels { return &neon }

func assembled(f family.Family) *kernels {
	if f == family.NEON {
		return &neon
	}
	return nil
}
