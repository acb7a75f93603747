package plots

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Plots do not touch each other, nor does what one has no room for, and after a reset each has
// the same memory again.
func TestPlots(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	memory := make([]byte, 4*line)
	all := []tensor.Arena{New(d, memory[:2*line]), New(d, memory[2*line:])}
	for range 2 {
		var rows []tensor.Matrix
		for i, a := range all {
			a.Reset()
			for n := range 3 { // the last one has no room
				m := a.Alloc(tensor.F32, 1, line/4-n)
				d.Write32(m, slices.Repeat([]float32{float32(3*i + n)}, line/4-n))
				rows = append(rows, m)
			}
		}
		for i, m := range rows {
			if got := m.F32(); slices.Min(got) != float32(i) || slices.Max(got) != float32(i) {
				t.Errorf("matrix %d has %v", i, got)
			}
		}
		if n := all[0].Bytes(); n <= 2*line {
			t.Errorf("%d bytes, with those that had no room", n)
		}
	}
	for _, a := range all {
		a.Close()
	}
}
