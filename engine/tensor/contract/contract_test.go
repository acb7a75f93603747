package contract

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// What agrees is what is equal, or off by no more than rounding.
func TestAgree(t *testing.T) {
	b := &bench{tolerance: 1e-5}
	for _, v := range []struct {
		got, want, terms float64
		agree            bool
	}{
		{1, 1 + 1e-6, 0, true},
		{1, 1.001, 0, false},
		{1, 1.001, 1000, true},
		{0, 1e-40, 0, true},
		{0, 1e-20, 0, false},
		{math.NaN(), math.NaN(), 0, true},
		{math.NaN(), 1, 1e9, false},
		{1, math.NaN(), 1e9, false},
		{math.Inf(1), math.Inf(1), 0, true},
		{1, math.Inf(1), math.Inf(1), false},
		{math.Inf(-1), math.Inf(1), 1, false},
		{math.Inf(1), 1, 1, false},
	} {
		if got := b.agree(v.got, v.want, v.terms); got != v.agree {
			t.Errorf("%v and %v, of terms of %v: %v", v.got, v.want, v.terms, got)
		}
	}
	if exact := (&bench{}); exact.agree(1, math.Nextafter(1, 2), 10) || !exact.agree(0, math.Copysign(0, -1), 0) {
		t.Error("with no tolerance only equal numbers agree")
	}
}

// The reference takes memory for nearly all it does.
func TestAllocationsAreNoticed(t *testing.T) {
	r := &recorder{}
	allocations(r, reference.New())
	if len(r.errors) < 20 {
		t.Errorf("only these are noticed: %q", r.errors)
	}
}
