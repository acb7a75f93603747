package dry

import "github.com/hopmesh/hopmesh/engine/tensor"

// The operations do nothing. Losses are 0, and everything is finite.

// Write does nothing.
func (*Device) Write(_ tensor.Matrix, _ []float64) {}

// Read does nothing.
func (*Device) Read(_ []float64, _ tensor.Matrix) {}

// Write32 does nothing.
func (*Device) Write32(_ tensor.Matrix, _ []float32) {}

// Read32 does nothing.
func (*Device) Read32(_ []float32, _ tensor.Matrix) {}

// MatMul does nothing.
func (*Device) MatMul(_, _, _ tensor.Matrix, _ tensor.Shape, _ bool, _ *tensor.Epilogue) {}

// Zero does nothing.
func (*Device) Zero(_ tensor.Matrix) {}

// Combine does nothing.
func (*Device) Combine(_ tensor.Matrix, _ float64, _ tensor.Matrix, _ float64, _ tensor.Matrix) {}

// Apply does nothing.
func (*Device) Apply(_, _ tensor.Matrix, _ *tensor.Epilogue) {}

// ApplyBack does nothing.
func (*Device) ApplyBack(_, _, _, _ tensor.Matrix, _ *tensor.Epilogue) {}

// Gather does nothing.
func (*Device) Gather(_ tensor.Matrix, _ []tensor.Part, _ []uint32) {}

// ScatterAdd does nothing.
func (*Device) ScatterAdd(_, _ tensor.Matrix, _ []int32) {}

// ScaleRows does nothing.
func (*Device) ScaleRows(_, _, _ tensor.Matrix) {}

// LayerNorm does nothing.
func (*Device) LayerNorm(_, _, _, _, _ tensor.Matrix, _ *tensor.Epilogue) {}

// LayerNormBack does nothing.
func (*Device) LayerNormBack(_, _, _, _, _, _, _ tensor.Matrix) {}

// Max does nothing.
func (*Device) Max(_, _, _ tensor.Matrix, _ int, _ bool) {}

// MaxBack does nothing.
func (*Device) MaxBack(_, _, _ tensor.Matrix, _ int) {}

// ColumnSums does nothing.
func (*Device) ColumnSums(_, _ tensor.Matrix) {}

// Densify does nothing.
func (*Device) Densify(_ tensor.Matrix, _ *tensor.CSR) {}

// DropValues does nothing.
func (*Device) DropValues(_, _ tensor.Matrix, _ *tensor.CSR, _ tensor.Dropout) {}

// Finite does nothing.
func (*Device) Finite(_ tensor.Matrix) bool { return true }

// Aggregate does nothing.
func (*Device) Aggregate(_ tensor.Matrix, _ *tensor.CSR, _, _ tensor.Matrix, _ tensor.Aggregation, _ bool, _ *tensor.Epilogue) {
}

// AggregateBack does nothing.
func (*Device) AggregateBack(_ tensor.Matrix, _ *tensor.CSR, _, _ tensor.Matrix, _ tensor.Aggregation, _ bool) {
}

// AggregateMax does nothing.
func (*Device) AggregateMax(_, _ tensor.Matrix, _ *tensor.CSR, _ tensor.Matrix) {}

// AggregateMaxBack does nothing.
func (*Device) AggregateMaxBack(_ tensor.Matrix, _ *tensor.CSR, _, _ tensor.Matrix, _ bool) {}

// HeadDot does nothing.
func (*Device) HeadDot(_, _, _ tensor.Matrix) {}

// HeadDotBack does nothing.
func (*Device) HeadDotBack(_, _, _, _, _ tensor.Matrix) {}

// Attend does nothing.
func (*Device) Attend(_, _ tensor.Matrix, _ *tensor.CSR, _, _, _ tensor.Matrix, _ float32, _ tensor.Dropout, _ int) {
}

// AttendBack counts the memory it would keep.
func (d *Device) AttendBack(_, dleft, _ tensor.Matrix, g *tensor.CSR, _, _, _, _, _ tensor.Matrix, _ float32, _ tensor.Dropout, _ int) {
	d.attend(dleft.Cols, g)
}

// AttendV2 does nothing.
func (*Device) AttendV2(_, _ tensor.Matrix, _ *tensor.CSR, _, _, _ tensor.Matrix, _ float32, _ tensor.Dropout, _ int) {
}

// AttendV2Back counts the memory it would keep.
func (d *Device) AttendV2Back(_, _, _ tensor.Matrix, g *tensor.CSR, _, stats, _, _, _ tensor.Matrix, _ float32, _ tensor.Dropout, _ int) {
	d.attend(stats.Cols/2, g)
}

// CrossEntropy does nothing.
func (*Device) CrossEntropy(_, _ tensor.Matrix, _ []int32, _ float64) (float64, int) { return 0, 0 }

// BinaryCrossEntropy does nothing.
func (*Device) BinaryCrossEntropy(_, _ tensor.Matrix, _ []int32, _ float64) (float64, int) {
	return 0, 0
}

// Adam does nothing.
func (*Device) Adam(_, _, _, _ tensor.Matrix, _ tensor.AdamStep) {}

// SGD does nothing.
func (*Device) SGD(_, _, _ tensor.Matrix, _ tensor.SGDStep) {}
