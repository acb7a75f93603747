package gemm

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

var avx2 = kernels{transpose: avx2Transpose, add: avx2Add, widths: []width{
	{16, []kernel{
		{6, avx2Rows6x16, avx2Columns6x16},
		{4, avx2Rows4x16, avx2Columns4x16},
		{2, avx2Rows2x16, avx2Columns2x16},
		{1, avx2Rows1x16, avx2Columns1x16},
	}},
	{8, []kernel{
		{12, avx2Rows12x8, avx2Columns12x8},
		{6, avx2Rows6x8, avx2Columns6x8},
		{4, avx2Rows4x8, avx2Columns4x8},
		{2, avx2Rows2x8, avx2Columns2x8},
		{1, avx2Rows1x8, avx2Columns1x8},
	}},
}}

var avx512 = kernels{transpose: avx2Transpose, add: avx2Add, widths: []width{
	{32, []kernel{
		{14, avx512Rows14x32, avx512Columns14x32},
		{8, avx512Rows8x32, avx512Columns8x32},
		{4, avx512Rows4x32, avx512Columns4x32},
		{2, avx512Rows2x32, avx512Columns2x32},
		{1, avx512Rows1x32, avx512Columns1x32},
	}},
	{16, []kernel{
		{14, avx512Rows14x16, avx512Columns14x16},
		{8, avx512Rows8x16, avx512Columns8x16},
		{4, avx512Rows4x16, avx512Columns4x16},
		{2, avx512Rows2x16, avx512Columns2x16},
		{1, avx512Rows1x16, avx512Columns1x16},
	}},
	{8, []kernel{
		{14, avx512Rows14x8, avx512Columns14x8},
		{8, avx512Rows8x8, avx512Columns8x8},
		{4, avx512Rows4x8, avx512Columns4x8},
		{2, avx512Rows2x8, avx512Columns2x8},
		{1, avx512Rows1x8, avx512Columns1x8},
	}},
}}

var bf16 = kernels{transpose: avx2Transpose, add: avx2Add, pairs: &pairs{bf16Along, bf16Across}, widths: []width{
	{32, []kernel{
		{14, bf16Rows14x32, bf16Columns14x32},
		{8, bf16Rows8x32, bf16Columns8x32},
		{4, bf16Rows4x32, bf16Columns4x32},
		{2, bf16Rows2x32, bf16Columns2x32},
		{1, bf16Rows1x32, bf16Columns1x32},
	}},
	{16, []kernel{
		{14, bf16Rows14x16, bf16Columns14x16},
		{8, bf16Rows8x16, bf16Columns8x16},
		{4, bf16Rows4x16, bf16Columns4x16},
		{2, bf16Rows2x16, bf16Columns2x16},
		{1, bf16Rows1x16, bf16Columns1x16},
	}},
	{8, []kernel{
		{14, bf16Rows14x8, bf16Columns14x8},
		{8, bf16Rows8x8, bf16Columns8x8},
		{4, bf16Rows4x8, bf16Columns4x8},
		{2, bf16Rows2x8, bf16Columns2x8},
		{1, bf16Rows1x8, bf16Columns1x8},
	}},
}}

// forBF16 returns the kernels that multiply BF16, on CPUs that can.
func forBF16() *kernels { return &bf16 }

func assembled(f family.Family) *kernels {
	switch f {
	case family.AVX2:
		return &avx2
	case family.AVX512:
		return &avx512
	}
	return nil
}
