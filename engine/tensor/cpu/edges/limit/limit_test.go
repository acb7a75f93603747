package limit

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

func TestGather(t *testing.T) {
	x := tensor.OverF32(100, 40, make([]float32, 4000))
	for i := range x.F32() {
		x.F32()[i] = 1
	}
	for _, threads := range []int{1, 2, 3} {
		sink.sum = 0
		if rate := Gather(x, 3000, threads); rate <= 0 {
			t.Errorf("%g bytes a second on %d threads", rate, threads)
		}
		if sink.sum == 0 {
			t.Error("nothing was read")
		}
	}
	if rate := Gather(x.View(0, 100, 0, 7), 3000, 1); rate <= 0 {
		t.Errorf("%g bytes a second of narrow rows", rate)
	}
	// Not even one row is whole lines.
	if rate := Gather(x.View(0, 1, 0, 17), 3000, 1); rate != 0 {
		t.Errorf("%g bytes a second of what can't be read", rate)
	}
	before := sink.sum
	readGeneric(x, []int32{0, 99})
	if sink.sum == before {
		t.Error("nothing was read without assembly")
	}
}

func TestCopy(t *testing.T) {
	from := tensor.OverF32(1001, 777, make([]float32, 1001*777))
	to := tensor.OverF32(1001, 777, make([]float32, 1001*777))
	for i := range from.F32() {
		from.F32()[i] = float32(i)
	}
	for _, threads := range []int{1, 3} {
		clear(to.F32())
		if rate := Copy(to, from, threads); rate <= 0 {
			t.Errorf("%g bytes a second on %d threads", rate, threads)
		}
		for i, v := range to.F32() {
			if v != float32(i) {
				t.Fatalf("%d threads: element %d is %g", threads, i, v)
			}
		}
	}
	if rate := Copy(to, from.RowRange(0, 10), 1); rate != 0 {
		t.Errorf("%g bytes a second between unlike sizes", rate)
	}
}
