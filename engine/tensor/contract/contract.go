// Package contract is the suite that every device must pass: each operation of
// engine/tensor, on ragged, empty, large and hostile operands, judged by the
// reference. It sees a device through tensor.Device alone, so that it does not
// matter where a device has its memory.
package contract

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A check is the cases of one operation.
type check struct {
	name string
	run  func(b *bench)
}

var checks = []check{
	{"Arena", arenas},
	{"Write", conversions},
	{"Zero", zeros},
	{"MatMul", products},
	{"Combine", combinations},
	{"Apply", epilogues},
	{"ApplyBack", epiloguesBack},
	{"Gather", gathers},
	{"ScatterAdd", scatters},
	{"ScaleRows", scaledRows},
	{"LayerNorm", norms},
	{"LayerNormBack", normsBack},
	{"Max", maxima},
	{"MaxBack", maximaBack},
	{"ColumnSums", columnSums},
	{"Densify", densities},
	{"DropValues", droppedValues},
	{"Finite", finites},
	{"Aggregate", aggregates},
	{"AggregateBack", aggregatesBack},
	{"AggregateMax", aggregatedMaxima},
	{"AggregateMaxBack", aggregatedMaximaBack},
	{"HeadDot", headDots},
	{"HeadDotBack", headDotsBack},
	{"Attend", attentions},
	{"AttendBack", attentionsBack},
	{"AttendV2", attentionsV2},
	{"AttendV2Back", attentionsV2Back},
	{"CrossEntropy", crossEntropies},
	{"BinaryCrossEntropy", binaryCrossEntropies},
	{"Adam", adams},
	{"SGD", descents},
}

// tolerance is what an element may be off, relative to the sum of the magnitudes of
// what it is the sum of.
var tolerance = map[tensor.Type]float64{tensor.F32: 1e-5, tensor.F64: 1e-12}

// Run judges d by the reference.
func Run(t *testing.T, d tensor.Device) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.on(t, d, reference.New(), tolerance[d.Type()]) })
	}
}

// Products judges nothing but products, of a device that rounds their operands: they
// may be off by so much, relative to the sum of the magnitudes of what is added up.
func Products(t *testing.T, d tensor.Device, tolerance float64) {
	check{"MatMul", products}.on(t, d, reference.New(), tolerance)
}

// Same demands the same bits of two devices: of one with other threads, or with
// other kernels that promise so.
func Same(t *testing.T, a, b tensor.Device) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.on(t, a, b, 0) })
	}
}

func (c check) on(r reporter, d, judge tensor.Device, tolerance float64) {
	b := newBench(r, c.name, d, judge, tolerance)
	defer b.close()
	c.run(b)
}
