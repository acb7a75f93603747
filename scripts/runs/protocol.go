package runs

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/recipe"
)

// The protocol of all rows that compare ways to train, written down before any of them ran: as
// many seeds, and epochs until validation has not improved for a while, on both sides alike.
const (
	Seeds    = 5
	Every    = 5   // epochs between evaluations
	Patience = 10  // evaluations without a better one, after which a run ends
	Most     = 400 // epochs, where validation goes on to improve
)

// Follow makes a recipe follow the protocol. Slow ones have as many times its epochs.
func Follow(r *recipe.Recipe, slow int) {
	r.EvalEvery, r.Patience, r.Epochs = slow*Every, Patience, slow*Most
}

// Text returns a mean with its deviation. It says how many runs are missing, and how many ended
// while validation still improved.
func (m *Mean) Text(seeds int) string {
	if m.Done == 0 {
		return "*not run yet*"
	}
	text := fmt.Sprintf("%.2f ± %.2f", m.Test, m.Deviation)
	if m.Done < seeds {
		text += fmt.Sprintf(", *%d of %d*", m.Done, seeds)
	}
	if m.Capped > 0 {
		text += fmt.Sprintf(", *%d still improved*", m.Capped)
	}
	return text
}

// Noise reports whether two means lie no further apart than chance takes them: two standard
// errors of their difference.
func Noise(a, b *Mean) bool {
	if a.Done < 2 || b.Done < 2 {
		return false
	}
	return math.Abs(a.Test-b.Test) <= 2*math.Sqrt(a.Deviation*a.Deviation/float64(a.Done)+b.Deviation*b.Deviation/float64(b.Done))
}
