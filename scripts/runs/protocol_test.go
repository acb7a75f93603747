package runs

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/recipe"
)

// Both sides of a comparison get the same epochs, whatever their recipes said.
func TestRecipesFollowTheProtocol(t *testing.T) {
	for slow, want := range map[int][3]int{1: {5, 10, 400}, 3: {15, 10, 1200}} {
		r := recipe.Recipe{EvalEvery: 7, Patience: 99, Epochs: 3}
		Follow(&r, slow)
		if got := [3]int{r.EvalEvery, r.Patience, r.Epochs}; got != want {
			t.Errorf("%d times as slow: %v, want %v", slow, got, want)
		}
	}
}

// Two standard errors of five runs each with a deviation of 0.5 are 0.63.
func TestNoise(t *testing.T) {
	of := func(done int, test float64) *Mean { return &Mean{Done: done, Test: test, Deviation: 0.5} }
	for _, c := range []struct {
		a, b *Mean
		want bool
	}{
		{of(5, 80), of(5, 80.6), true}, {of(5, 80.6), of(5, 80), true}, {of(5, 80), of(5, 80.7), false},
		{of(1, 80), of(5, 80), false}, {of(5, 80), of(0, 80), false}, // one run has no deviation
	} {
		if got := Noise(c.a, c.b); got != c.want {
			t.Errorf("%v beside %v: %v", c.a, c.b, got)
		}
	}
}

func TestTextOfMeans(t *testing.T) {
	for want, m := range map[string]Mean{
		"*not run yet*":          {},
		"80.00 ± 0.25":           {Done: 5, Test: 80, Deviation: 0.25},
		"80.00 ± 0.25, *2 of 5*": {Done: 2, Test: 80, Deviation: 0.25},
		"80.00 ± 0.25, *2 of 5*, *1 still improved*": {Done: 2, Test: 80, Deviation: 0.25, Capped: 1},
	} {
		if got := m.Text(Seeds); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
