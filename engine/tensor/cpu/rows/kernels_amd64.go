package rows

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

func choose() *assembly {
	switch family.Current() {
	case family.AVX512:
		return &avx512Kernels
	case family.AVX2:
		return &avx2Kernels
	}
	return &assembly{}
}

var avx2Kernels = assembly{
	finish: [3][2][2]finisher{
		{{nil, avx2FinishLinearDrop}, {avx2FinishLinearBias, avx2FinishLinearBiasDrop}},
		{{avx2FinishReLU, avx2FinishReLUDrop}, {avx2FinishReLUBias, avx2FinishReLUBiasDrop}},
		{{avx2FinishELU, avx2FinishELUDrop}, {avx2FinishELUBias, avx2FinishELUBiasDrop}},
	},
	back: [3][2][2]backer{
		{{nil, avx2BackLinearSums}, {avx2BackLinearDrop, avx2BackLinearDropSums}},
		{{avx2BackReLU, avx2BackReLUSums}, {avx2BackReLU, avx2BackReLUSums}},
		{{avx2BackELU, avx2BackELUSums}, {avx2BackELUDrop, avx2BackELUDropSums}},
	},
	add:      avx2Add,
	addUp:    avx2AddUp,
	scale:    avx2Scale,
	combine:  avx2Combine,
	max:      avx2Max,
	maxBack:  avx2MaxBack,
	exp:      avx2Exp,
	finite:   avx2Finite,
	narrow:   avx2Narrow,
	norm:     avx2Norm,
	normBack: avx2NormBack,
	sum:      avx2Sum,
	largest:  avx2Largest,
	binary:   avx2Binary,
	adam:     avx2Adam,
	sgd:      [2]func(w, g, m *float32, n int, rate, momentum, decay float32){avx2SGD, avx2SGDMomentum},
	drop:     avx2DropEntries,
}

var avx512Kernels = assembly{
	finish: [3][2][2]finisher{
		{{nil, avx512FinishLinearDrop}, {avx512FinishLinearBias, avx512FinishLinearBiasDrop}},
		{{avx512FinishReLU, avx512FinishReLUDrop}, {avx512FinishReLUBias, avx512FinishReLUBiasDrop}},
		{{avx512FinishELU, avx512FinishELUDrop}, {avx512FinishELUBias, avx512FinishELUBiasDrop}},
	},
	back: [3][2][2]backer{
		{{nil, avx512BackLinearSums}, {avx512BackLinearDrop, avx512BackLinearDropSums}},
		{{avx512BackReLU, avx512BackReLUSums}, {avx512BackReLU, avx512BackReLUSums}},
		{{avx512BackELU, avx512BackELUSums}, {avx512BackELUDrop, avx512BackELUDropSums}},
	},
	add:      avx512Add,
	addUp:    avx512AddUp,
	scale:    avx512Scale,
	combine:  avx512Combine,
	max:      avx512Max,
	maxBack:  avx512MaxBack,
	exp:      avx512Exp,
	finite:   avx512Finite,
	narrow:   avx512Narrow,
	norm:     avx512Norm,
	normBack: avx512NormBack,
	sum:      avx512Sum,
	largest:  avx512Largest,
	binary:   avx512Binary,
	adam:     avx512Adam,
	sgd:      [2]func(w, g, m *float32, n int, rate, momentum, decay float32){avx512SGD, avx512SGDMomentum},
	drop:     avx512DropEntries,
}

// copyRows copies rows of n numbers from the addresses in from, and prefetches so many
// lines at those in ahead. It is not a field of assembly because its pointers would then
// escape to the heap. It reports whether it could.
func copyRows(y *float32, stride int, from, ahead **byte, rows, n, lines int, wider bool) bool {
	switch {
	case kernels == &avx512Kernels && wider:
		avx512CopyWider(y, stride, from, ahead, rows, n, lines)
	case kernels == &avx512Kernels:
		avx512Copy(y, stride, from, ahead, rows, n, lines)
	case kernels == &avx2Kernels && wider:
		avx2CopyWider(y, stride, from, ahead, rows, n, lines)
	case kernels == &avx2Kernels:
		avx2Copy(y, stride, from, ahead, rows, n, lines)
	default:
		return false
	}
	return true
}

// addRows adds rows of n numbers to others, and prefetches lines of those that come so
// many rows later. It is separate for the same reason as copyRows.
func addRows(to, from **byte, ahead, rows, n, lines int) bool {
	switch kernels {
	case &avx512Kernels:
		avx512AddRows(to, from, 8*ahead, rows, n, lines)
	case &avx2Kernels:
		avx2AddRows(to, from, 8*ahead, rows, n, lines)
	default:
		return false
	}
	return true
}
