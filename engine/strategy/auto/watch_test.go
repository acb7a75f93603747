package auto

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

// noted returns after how many of these epochs there is another trial; 0: after none.
func noted(w *watch, rows epoch.Rows, seconds ...float64) int {
	for i, s := range seconds {
		if w.note(s, rows) {
			return i + 1
		}
	}
	return 0
}

func TestWhenStrategiesAreTriedAgain(t *testing.T) {
	all := epoch.Rows{Remote: 1000}
	times := func(n int, s float64) []float64 { return slices.Repeat([]float64{s}, n) }
	for name, c := range map[string]struct {
		now     epoch.Rows
		seconds []float64
		want    int
	}{
		"nothing changes":              {all, times(100, 1), 0},
		"a slow epoch now and then":    {all, []float64{1, 1, 1, 9, 1, 1, 9, 1, 1, 1, 9}, 0},
		"a little slower":              {all, append(times(5, 1), times(20, 1.2)...), 0},
		"slower":                       {all, append(times(5, 1), times(20, 1.3)...), 7},
		"faster":                       {all, append(times(5, 1), times(20, 0.7)...), 7},
		"no time at all":               {all, times(20, 0), 0},
		"rows stay":                    {epoch.Rows{Remote: 10, Kept: 990}, times(20, 1), 3},
		"fewer rows, all of them come": {epoch.Rows{Remote: 10}, times(20, 1), 0},
	} {
		var w watch
		w.tried(all)
		if got := noted(&w, c.now, c.seconds...); got != c.want {
			t.Errorf("%s: another trial after %d epochs", name, got)
		}
	}
}

// The first trial waits until rows have come that stay, or for three epochs.
func TestWhenStrategiesAreFirstTried(t *testing.T) {
	for name, c := range map[string]struct {
		rows []epoch.Rows // of epochs
		want int
		why  string
	}{
		"nothing comes":        {[]epoch.Rows{{Local: 9}}, 1, "since no trial has ended yet"},
		"rows come once":       {[]epoch.Rows{{Remote: 900, Kept: 100}, {Remote: 100, Kept: 900}}, 2, "now that rows of other nodes have come"},
		"rows come for longer": {[]epoch.Rows{{Remote: 900}, {Remote: 800, Kept: 100}, {Remote: 700, Kept: 200}}, 3, "since no trial has ended yet"},
	} {
		w := watch{untried: true}
		for i, r := range c.rows {
			if got := w.note(1, r); got != (i+1 == c.want) {
				t.Errorf("%s: after epoch %d: %v", name, i+1, got)
			}
		}
		if got := w.because(c.rows[c.want-1]); got != c.why {
			t.Errorf("%s: %s", name, got)
		}
		w.tried(c.rows[0])
		if got := noted(&w, c.rows[0], 1, 1, 1, 1, 1); got > 0 {
			t.Errorf("%s: another trial after %d epochs", name, got)
		}
	}
}

// Where times never stay the same, trials become rarer.
func TestTrialsBecomeRarer(t *testing.T) {
	var w watch
	w.tried(epoch.Rows{})
	seconds, last := 1.0, 0
	for range 6 {
		n := 0
		for !w.note(seconds, epoch.Rows{}) {
			n++
			seconds *= 2
		}
		if n < last {
			t.Errorf("%d epochs after %d", n, last)
		}
		last = n
		w.tried(epoch.Rows{})
	}
	if last < 50 {
		t.Errorf("after six trials there is another after %d epochs", last)
	}
}
