// Package contract is the conformance suite of devices: each operation of engine/tensor,
// on ragged, empty, large and hostile operands, compared with the reference. It uses a
// device only through tensor.Device, so it does not matter where the device has its
// memory.
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

// tolerance is the allowed error of an element, relative to the sum of the magnitudes of
// its terms.
var tolerance = map[tensor.Type]float64{tensor.F32: 1e-5, tensor.F64: 1e-12}

// Run compares d with the reference.
func Run(t *testing.T, d tensor.Device) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.on(t, d, reference.New(), tolerance[d.Type()]) })
	}
}

// Products tests only the products of a device that rounds their operands, with this
// tolerance relative to the sum of the magnitudes of the terms.
func Products(t *testing.T, d tensor.Device, tolerance float64) {
	check{"MatMul", products}.on(t, d, reference.New(), tolerance)
}

// Same checks that two devices return the same bits: with other numbers of threads, or
// with other kernels that promise it.
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
