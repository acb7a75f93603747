package plan

import "testing"

// What is measured of equal machines differs by chance, and must move no shard;
// machines that do differ get their share.
func TestOrdinaryDifferencesOfSpeedDoNotCount(t *testing.T) {
	s := &State{Members: map[string]Member{
		"a": {ID: "a", Speed: 1563}, "b": {ID: "b", Speed: 3815}, "c": {ID: "c", Speed: 1950}, "d": {ID: "d"},
	}}
	usual := UsualSpeed(s)
	for id, p := range s.Members {
		if w := WeightOf(p.Speed, usual); w != usual {
			t.Errorf("%s has the weight %d beside %d", id, w, usual)
		}
	}
	if fast, slow := WeightOf(usual*10, usual), WeightOf(2, usual); fast != usual*10 || slow != 2 {
		t.Errorf("a fast node weighs %d, a slow one %d, the usual %d", fast, slow, usual)
	}
}
