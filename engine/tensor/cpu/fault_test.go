package cpu_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/mapped/mappedtest"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Kernels in assembly that read a mapped file which is cut short end with a panic of who called
// them, on any number of threads, and the device goes on.
func TestKernelsReadAFileThatIsCutShort(t *testing.T) {
	const rows, cols = 4096, 64
	b := mappedtest.Cut(t, 4*rows*cols, 4096)
	numbers := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), rows*cols)
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = uint32(rows - 1 - i)
	}
	for _, threads := range []int{1, 2, 5} {
		d := cpu.New(threads)
		work, err := d.NewArena(8 << 20)
		if err != nil {
			t.Fatal(err)
		}
		short := tensor.OverF32(rows, cols, numbers)
		whole := work.Alloc(tensor.F32, rows, cols)
		weights := work.Alloc(tensor.F32, cols, cols)
		for name, do := range map[string]func(){
			"product": func() { d.MatMul(whole, short, weights, tensor.NN, false, nil) },
			"gather":  func() { d.Gather(whole, []tensor.Part{{X: short}}, ids) },
		} {
			read := func() (err error) {
				defer mapped.End(mapped.Guard())
				defer mapped.Caught(&err)
				do()
				return nil
			}
			if err := read(); !errors.Is(err, mapped.ErrUnreadable) {
				t.Errorf("%s on %d threads: %v", name, threads, err)
			}
		}
		d.MatMul(whole, work.Alloc(tensor.F32, rows, cols), weights, tensor.NN, false, nil)
		work.Close()
		d.Close()
	}
}
