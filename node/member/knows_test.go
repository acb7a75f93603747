package member

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
)

// What a newcomer says it knows is from outside.
func TestKnows(t *testing.T) {
	for most, want := range map[int]plan.Kind{0: 0, 27: 27, 255: 255, 256: 255, math.MaxInt: 255, -1: 0, math.MinInt: 0} {
		if got := Knows(mesh.Numbers{Plan: mesh.Range{Max: most}}); got != want {
			t.Errorf("%d: %d, want %d", most, got, want)
		}
	}
}
