package grappa

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// A degree that a group has not been given is an error, and not that of another vertex.
func TestDegreesOfOthersAreRefused(t *testing.T) {
	d := &degrees{vicinity.NewPlaces([]uint32{3, 700, 701}, 1000), []float32{0.5, 0.25, 1}}
	to := make([]float32, 2)
	if err := d.of(t.Context(), []uint32{701, 3}, to); err != nil || to[0] != 1 || to[1] != 0.5 {
		t.Errorf("%v, %v", to, err)
	}
	for _, v := range []uint32{0, 4, 702, 999} {
		if err := d.of(t.Context(), []uint32{v}, to); err == nil || !strings.Contains(err.Error(), "which it has not been given") {
			t.Errorf("vertex %d: %v", v, err)
		}
	}
}
