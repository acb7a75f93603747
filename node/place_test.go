package node

import (
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// What is measured of equal machines differs by chance, and must move no shard;
// machines that do differ get their share.
func TestOrdinaryDifferencesOfSpeedDoNotCount(t *testing.T) {
	s := &plan.State{Members: map[string]plan.Member{
		"a": {ID: "a", Speed: 1563}, "b": {ID: "b", Speed: 3815}, "c": {ID: "c", Speed: 1950}, "d": {ID: "d"},
	}}
	usual := usualSpeed(s)
	for id, p := range s.Members {
		if w := weightOf(p.Speed, usual); w != usual {
			t.Errorf("%s has the weight %d beside %d", id, w, usual)
		}
	}
	if fast, slow := weightOf(usual*10, usual), weightOf(2, usual); fast != usual*10 || slow != 2 {
		t.Errorf("a fast node weighs %d, a slow one %d, the usual %d", fast, slow, usual)
	}
}
