package gather

import (
	"math"
	"testing"
)

// TestPaceWithinAnEpoch: what is read of an epoch that was under way counts for none.
func TestPaceWithinAnEpoch(t *testing.T) {
	var p pace
	p.note(50, 50)
	p.begin(10)
	p.note(100, 60)
	p.note(100, 70)
	if rows := p.begin(10); math.Abs(rows-10./100*200*10) > 1e-9 {
		t.Errorf("%v rows are expected", rows)
	}
}

// TestPace: rows that come as they did lately are expected from the epochs that are left, whatever
// came before.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		came []int64 // after each step, of 100 rows that it reads; two steps are an epoch
		want float64 // in ten epochs more
	}{
		"nothing was read":           {nil, 0},
		"all are new":                {[]int64{100, 200}, 2000},
		"none is new any more":       {[]int64{100, 100}, 0},
		"half are new in the second": {[]int64{100, 150}, 1000},
		"what came first is long ago": {[]int64{
			100, 150, 200, 250, // marks at 100, 200 and 400 rows
			250, 250, 250, 260, // 10 of the last 400
		}, 10. / 400 * 200 * 10},
	} {
		var p pace
		if rows := p.begin(10); rows != 0 {
			t.Errorf("%s: %v rows are expected before the first epoch", name, rows)
		}
		for i, came := range c.came {
			if i > 0 && i%2 == 0 {
				p.begin(10)
			}
			p.note(100, came)
		}
		if rows := p.begin(10); math.Abs(rows-c.want) > 1e-9 {
			t.Errorf("%s: %v rows are expected, and should be %v", name, rows, c.want)
		}
		p.clear()
		if rows := p.begin(10); rows != 0 {
			t.Errorf("%s: %v rows are expected of what was forgotten", name, rows)
		}
	}
}
