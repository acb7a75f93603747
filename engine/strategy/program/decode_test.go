package program

import (
	"bytes"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/desk"
)

func FuzzActs(f *testing.F) {
	for _, a := range []act{{}, {actF32, 12, 3}, {actReport, 0, -1}, {actF64, desk.MostBytes, 0}, {Weight: math.Inf(1)}} {
		f.Add(append(a.encode(), `{"loss":1}`...))
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		a, rest, err := readAct(m)
		if err != nil {
			return
		}
		if a.Kind > actReport || a.Count > desk.MostBytes/4 || !(math.Abs(a.Weight) <= desk.MostWeight) {
			t.Errorf("%+v", a)
		}
		if !bytes.Equal(append(a.encode(), rest...), m) {
			t.Errorf("%x comes back as %+v and %x", m, a, rest)
		}
		if s, err := readScores(rest); err == nil && s.ValAcc != nil && (*s.ValAcc < 0 || *s.ValAcc > 1) {
			t.Errorf("an accuracy of %g", *s.ValAcc)
		}
	})
}

// Any bytes come back from the numbers of a checkpoint, which have to be finite.
func TestBytesAsNumbers(t *testing.T) {
	all := make([]byte, 1<<10)
	for i := range all {
		all[i] = byte(i * 31)
	}
	for n := range len(all) {
		if got, err := unpack(pack(nil, all[:n]), n); err != nil || !bytes.Equal(got, all[:n]) {
			t.Fatalf("%x comes back as %x, %v", all[:n], got, err)
		}
	}
	for _, x := range []float32{-1, 0.5, 1 << 16, float32(math.Inf(1)), float32(math.NaN())} {
		if _, err := unpack([]float32{x}, 0); err == nil {
			t.Errorf("%g passes for two bytes", x)
		}
		if n, err := sizeOf([]float32{1, x, 0}); err == nil && (n < 0 || n > desk.MostBytes) {
			t.Errorf("a size of %d", n)
		}
	}
}
