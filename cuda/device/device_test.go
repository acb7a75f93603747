//go:build cuda && emulator

package device

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// matrix is one of an arena of its own, filled.
func matrix(t *testing.T, d *Device, rows, cols int, of func(i int) float32) tensor.Matrix {
	t.Helper()
	a, err := d.NewArena(4 * rows * cols)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	m := a.Alloc(tensor.F32, rows, cols)
	if of != nil {
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = of(i)
		}
		d.Write32(m, x)
	}
	return m
}

func numbers(d *Device, m tensor.Matrix) []float32 {
	x := make([]float32, m.Rows*m.Cols)
	d.Read32(x, m)
	return x
}

// Operations come from any goroutine, one at a time, and a device can be opened when
// another was closed.
func TestAnyGoroutineAndAgain(t *testing.T) {
	for range 2 {
		d := opened(t, Options{})
		m := matrix(t, d, 3, 5, func(int) float32 { return 0 })
		for range 8 {
			done := make(chan bool)
			go func() {
				defer close(done)
				d.Combine(m, 2, m, 0, tensor.Matrix{})
				d.Combine(m, 1, m, 1, m)
				d.Write32(m.View(0, 3, 0, 1), []float32{1, 2, 3})
			}()
			<-done
		}
		if got := numbers(d, m); got[0] != 1 || got[1] != 0 || got[5] != 2 || got[10] != 3 {
			t.Errorf("got %v", got)
		}
	}
}

// Err reports a fault, with the call and the kernel. All operations after it do nothing, and
// the process opens no GPU again, so the fault happens in a process of its own.
func TestFaultsStay(t *testing.T) {
	const faults = "DEVICE_TEST_FAULTS"
	if os.Getenv(faults) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaultsStay$")
		c.Env = append(os.Environ(), faults+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	d, err := Open(0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.NewArena(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Alloc(tensor.F32, 8, 8)
	// An index far beyond what there is.
	g := &tensor.CSR{Rows: 1, Cols: 1 << 30, Indptr: []int64{0, 1}, Indices: []int32{1<<30 - 1}}
	d.Aggregate(m.RowRange(0, 1), g, tensor.Matrix{}, over(tensor.F32, 1<<30, 8, addressOf(m)), tensor.Sum, false, nil)
	err = d.Err()
	if !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "cuStreamSynchronize: CUDA_ERROR") ||
		!strings.Contains(err.Error(), "the kernel that it was given last is aggregate_f32") {
		t.Fatalf("got %v", err)
	}
	d.Zero(m)
	d.Write32(m, make([]float32, 64))
	d.Apply(m, m, nil)
	if loss, right := d.CrossEntropy(tensor.Matrix{}, m, make([]int32, 8), 1); loss != 0 || right != 0 || d.Finite(m) {
		t.Errorf("got %v and %v", loss, right)
	}
	a.Reset()
	if m := a.Alloc(tensor.F32, 1000, 1000); m.None() || m.Rows != 1000 {
		t.Errorf("got %v", m)
	}
	if _, again := d.NewArena(1); !errors.Is(again, err) {
		t.Errorf("got %v", again)
	}
	a.Close()
	d.Close()
	if again := d.Err(); !errors.Is(again, err) {
		t.Errorf("got %v", again)
	}
	if _, err := Open(0, Options{}); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "started anew") {
		t.Errorf("opened again: %v", err)
	}
}

func TestClosed(t *testing.T) {
	d, err := Open(0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := d.Err(); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := d.NewArena(1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestOutOfMemory(t *testing.T) {
	d := opened(t, Options{})
	free, total := d.Free()
	if free == 0 || free > total {
		t.Fatalf("%d of %d bytes are free", free, total)
	}
	_, err := d.NewArena(int(total) + 1)
	if err == nil || !strings.Contains(err.Error(), "MiB of the GPU's memory are needed at once, and ") || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("got %v", err)
	}
	if err := d.Err(); err != nil {
		t.Errorf("an arena that can't be had is the end: %v", err)
	}
	// In the middle of a step it is.
	broken, err := Open(0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	a, err := broken.NewArena(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	m := a.Alloc(tensor.F32, int(total)/1024, 1024)
	broken.Zero(m)
	if err := broken.Err(); err == nil || !strings.Contains(err.Error(), "an arena that holds 2 MiB: ") || !strings.Contains(err.Error(), "are free") {
		t.Errorf("got %v", err)
	}
}

// Copies of CSRs give way to what can't be had else, and are made again.
func TestMirrorsGiveWay(t *testing.T) {
	d := opened(t, Options{})
	g := star(1000, tensor.NewStamp())
	x, y := matrix(t, d, 1, 1, func(int) float32 { return 1 }), matrix(t, d, g.Rows, 1, nil)
	for range 2 {
		d.Aggregate(y, g, tensor.Matrix{}, x, tensor.Sum, false, nil)
		if got := numbers(d, y); got[0] != 1 || got[999] != 1 || d.mirrors.bytes < 12_000 {
			t.Fatalf("got %v and %v, and %d bytes are kept", got[0], got[999], d.mirrors.bytes)
		}
		_, total := d.Free()
		if _, err := d.NewArena(int(total) + 1); err == nil || d.mirrors.bytes != 0 || len(d.mirrors.kept) != 0 {
			t.Errorf("%v, and %d bytes are kept", err, d.mirrors.bytes)
		}
	}
}

// star is a CSR of rows with one entry each, of the one column.
func star(rows int, stamp uint64) *tensor.CSR {
	g := &tensor.CSR{Rows: rows, Cols: 1, Indptr: make([]int64, rows+1), Indices: make([]int32, rows), Stamp: stamp}
	for i := range g.Indptr {
		g.Indptr[i] = int64(i)
	}
	return g
}
