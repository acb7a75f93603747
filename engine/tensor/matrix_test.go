package tensor_test

import (
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

func counting(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestViewsShareMemory(t *testing.T) {
	data := counting(20)
	m := tensor.OverF32(4, 5, data)
	v := m.View(1, 2, 2, 3)
	if v.Rows != 2 || v.Cols != 3 || v.Stride != 5 || v.Type != tensor.F32 {
		t.Fatalf("the view is %+v", v)
	}
	x := v.F32()
	if len(x) != 8 || x[0] != 7 || x[5] != 12 || x[7] != 14 {
		t.Errorf("its elements are %v", x)
	}
	x[5] = -1
	if data[12] != -1 {
		t.Error("a view is a copy")
	}
	if again := v.View(1, 1, 1, 2).F32(); len(again) != 2 || again[0] != 13 {
		t.Errorf("a view of a view has %v", again)
	}
	if rows := m.RowRange(3, 1).F32(); len(rows) != 5 || rows[0] != 15 {
		t.Errorf("the last row is %v", rows)
	}
}

func TestViewsOfTypes(t *testing.T) {
	data := make([]float64, 12)
	base := unsafe.Pointer(&data[0])
	for kind, bytes := range map[tensor.Type]int{tensor.F64: 8, tensor.F32: 4, tensor.I32: 4, tensor.BF16: 2} {
		m := tensor.Over(kind, 3, 3, 4, base)
		if kind.Bytes() != bytes {
			t.Errorf("an element of %s has %d bytes", kind, kind.Bytes())
		}
		if off := uintptr(m.View(2, 1, 1, 1).Base()) - uintptr(base); int(off) != 9*bytes {
			t.Errorf("element [2,1] of %s is %d bytes in", kind, off)
		}
	}
	for kind, name := range map[tensor.Type]string{tensor.F64: "f64", tensor.F32: "f32", tensor.I32: "i32", tensor.BF16: "bf16"} {
		if kind.String() != name {
			t.Errorf("%s is called %s", name, kind)
		}
	}
	half := tensor.OverBF16(1, 3, []uint16{1, 2, 3})
	if x := half.View(0, 1, 2, 1).BF16(); len(x) != 1 || x[0] != 3 {
		t.Errorf("the last of BF16 is %v", x)
	}
	if x := tensor.Over(tensor.I32, 3, 4, 4, base).I32(); len(x) != 12 {
		t.Errorf("12 of I32 are %d", len(x))
	}
	if x := tensor.Over(tensor.F64, 3, 4, 4, base).F64(); len(x) != 12 {
		t.Errorf("12 of F64 are %d", len(x))
	}
}

// Views without elements may lie anywhere, and have none.
func TestEmptyViews(t *testing.T) {
	m := tensor.OverF32(4, 5, counting(20))
	for _, v := range []tensor.Matrix{m.View(4, 0, 0, 5), m.View(0, 4, 5, 0), m.View(4, 0, 5, 0), m.RowRange(2, 0)} {
		if v.None() || len(v.F32()) != 0 {
			t.Errorf("%+v is left out or has elements", v)
		}
	}
	empty := tensor.OverF32(0, 5, nil)
	if empty.None() || len(empty.F32()) != 0 || empty.View(0, 0, 1, 3).Cols != 3 {
		t.Error("a matrix without rows is left out, or not one")
	}
	if !(tensor.Matrix{}).None() || len((tensor.Matrix{}).F32()) != 0 {
		t.Error("the zero Matrix is not left out")
	}
}

func TestReshape(t *testing.T) {
	m := tensor.OverF32(4, 6, counting(24))
	r := m.Reshape(3, 8)
	if r.Rows != 3 || r.Cols != 8 || r.Stride != 8 || r.Base() != m.Base() {
		t.Errorf("reshaped it is %+v", r)
	}
	if one := m.View(2, 1, 1, 4).Reshape(2, 2); one.F32()[3] != 16 {
		t.Errorf("a part of one row is %v", one.F32())
	}
}

func TestFaultsOfTheProgramPanic(t *testing.T) {
	m := tensor.OverF32(4, 5, counting(20))
	for what, f := range map[string]func(){
		"too few elements":        func() { tensor.OverF32(4, 5, make([]float32, 19)) },
		"too many of BF16":        func() { tensor.OverBF16(1, 1, make([]uint16, 2)) },
		"rows beyond":             func() { m.View(3, 2, 0, 5) },
		"columns beyond":          func() { m.View(0, 4, 1, 5) },
		"a negative row":          func() { m.View(-1, 2, 0, 5) },
		"negative columns":        func() { m.View(0, 1, 3, -1) },
		"rows beyond in RowRange": func() { m.RowRange(4, 1) },
		"another type":            func() { m.F64() },
		"another number":          func() { m.Reshape(4, 4) },
		"gaps":                    func() { m.View(0, 2, 0, 4).Reshape(4, 2) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", what)
		}
	}
}

func TestEntries(t *testing.T) {
	g := tensor.CSR{Rows: 3, Cols: 2, Indptr: []int64{5, 6, 6, 9, 12}}
	if g.Entries() != 4 {
		t.Errorf("%d entries", g.Entries())
	}
	if none := (&tensor.CSR{Indptr: []int64{7}}); none.Entries() != 0 {
		t.Errorf("%d entries of no rows", none.Entries())
	}
}
