package dry_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
)

// The peak is that of all uses, and each matrix counts as arenas count it.
func TestPeak(t *testing.T) {
	d := dry.New(tensor.F32)
	a := d.Arena()
	m := a.Alloc(tensor.F32, 3, 11) // 132 bytes
	a.Alloc(tensor.F64, 2, 8)       // 128
	a.Alloc(tensor.I32, 0, 8)
	if a.Bytes() != 256+128+128 || a.Peak() != 512 {
		t.Errorf("%d bytes, at most %d", a.Bytes(), a.Peak())
	}
	if m.Rows != 3 || m.Cols != 11 || m.Stride != 11 || m.Type != tensor.F32 || m.None() {
		t.Errorf("%+v", m)
	}
	a.Reset()
	a.Alloc(tensor.BF16, 1, 65)
	if a.Bytes() != 256 || a.Peak() != 512 {
		t.Errorf("after a reset: %d bytes, at most %d", a.Bytes(), a.Peak())
	}
}

// Views of what is not there can be made, and passed to any operation.
func TestNothingIsComputed(t *testing.T) {
	d := dry.New(tensor.F64)
	a, err := d.NewArena(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Alloc(d.Type(), 1<<20, 1<<10)
	d.MatMul(m, m, m, tensor.NN, false, nil)
	d.Zero(m.View(1<<19, 5, 7, 9))
	if loss, right := d.CrossEntropy(m, m, nil, 1); loss != 0 || right != 0 || !d.Finite(m) {
		t.Error("something was computed")
	}
}
