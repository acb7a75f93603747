package cpu_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// fill writes to all of a matrix.
func fill(m tensor.Matrix, x byte) []byte {
	s := unsafe.Slice((*byte)(m.Base()), m.Rows*m.Cols*m.Type.Bytes())
	for i := range s {
		s[i] = x
	}
	return s
}

func TestArena(t *testing.T) {
	d := cpu.New(2)
	defer d.Close()
	a, err := d.NewArena(5 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Bytes() < 5<<20 || a.Bytes() > 8<<20 {
		t.Errorf("an arena for 5 MiB holds %d bytes", a.Bytes())
	}
	var first [12]unsafe.Pointer
	var handed [12][]byte
	for round := range 3 {
		for i := range first {
			m := a.Alloc(tensor.Type(i%4), 100*i*i, 37)
			if uintptr(m.Base())%64 != 0 {
				t.Fatalf("matrix %d starts at %p", i, m.Base())
			}
			if round > 0 && m.Base() != first[i] {
				t.Errorf("round %d: matrix %d moved", round, i)
			}
			if m.None() {
				t.Errorf("matrix %d is none", i)
			}
			first[i], handed[i] = m.Base(), fill(m, byte(i))
		}
		for i, s := range handed {
			for _, x := range s {
				if x != byte(i) {
					t.Fatalf("round %d: matrix %d shares memory with another", round, i)
				}
			}
		}
		a.Reset()
	}
	before := a.Bytes()
	if n := testing.AllocsPerRun(20, func() {
		a.Alloc(tensor.F32, 1000, 1000)
		a.Alloc(tensor.BF16, 999, 7)
		a.Reset()
	}); n != 0 || a.Bytes() != before {
		t.Errorf("%v allocations in a step, and %d bytes became %d", n, before, a.Bytes())
	}
}

func TestArenaGrows(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	if a.Bytes() != 0 {
		t.Errorf("an arena of nothing holds %d bytes", a.Bytes())
	}
	var all [][]byte
	for i := range 40 {
		all = append(all, fill(a.Alloc(tensor.F32, 50_000, 3), byte(i)))
	}
	for i, s := range all {
		if s[0] != byte(i) || s[len(s)-1] != byte(i) {
			t.Errorf("growing moved or lost matrix %d", i)
		}
	}
	if held := a.Bytes(); held < 40*600_000 || held > 80*600_000 {
		t.Errorf("%d bytes are held for %d", held, 40*600_000)
	}
	a.Close()
	if a.Bytes() != 0 {
		t.Errorf("%d bytes are held after Close", a.Bytes())
	}
}

func TestArenaRefuses(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	if _, err := d.NewArena(-1); err == nil {
		t.Error("an arena of -1 bytes")
	}
	_, err := d.NewArena(1 << 60)
	if err == nil || !strings.Contains(err.Error(), "1073741824.0 GiB") {
		t.Errorf("an arena of 2^60 bytes: %v", err)
	}
}

// An arena that gets no memory is an error of who asks, and holds what it held.
func TestArenasWithoutMemory(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	var short *budget.Exhausted
	if _, err := d.NewArena(1 << 50); !errors.As(err, &short) || short.Wants < 1<<50 {
		t.Errorf("%v", err)
	}
	a, err := d.NewArena(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	grow := func() (err error) {
		defer budget.Caught(&err)
		a.Alloc(tensor.F32, 1<<40, 1<<8)
		return nil
	}
	if err := grow(); !errors.As(err, &short) || short.Holds != uint64(a.Bytes()) || a.Bytes() != 2<<20 {
		t.Errorf("%v; it holds %d", err, a.Bytes())
	}
}
