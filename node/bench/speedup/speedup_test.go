package speedup

import (
	"strings"
	"testing"
)

// One node trains alone, several share; nothing else differs.
func TestJobs(t *testing.T) {
	for _, m := range models {
		one, four := m.ask("g", 1, 4), m.ask("g", 4, 4)
		if one.Strategy != "single" || four.Strategy != "leap" || *one.Layers != len(one.Fanout) || *one.Batch != batch {
			t.Errorf("%+v, %+v", one, four)
		}
		if four.Strategy = one.Strategy; *four.Hidden != *one.Hidden || len(four.Set) > 0 || *four.EvalEvery != 4 {
			t.Errorf("%+v, %+v", one, four)
		}
	}
	if l := networks[0].link(); l.Rate != rate || l.Cores != cores {
		t.Errorf("%+v", l)
	}
}

// The last size has bars: of the ceiling, or a number for the smallest model.
func TestFigures(t *testing.T) {
	got := figures([]Cell{
		{Network: "a", Nodes: 1, Model: "2 x 16", Speedup: 1, Ceiling: 1},
		{Network: "a", Nodes: 2, Model: "2 x 16", Speedup: 1.2, Ceiling: 1.9},
		{Network: "a", Nodes: 4, Model: "2 x 16", Speedup: 1.7, Ceiling: 3},
		{Network: "a", Nodes: 4, Model: "3 x 128", Speedup: 2.4, Ceiling: 2.8},
		{Network: "a", Nodes: 4, Model: "3 x 16", Speedup: 2.3, Ceiling: 2.8},
	})
	if len(got) != 4 || got[0].Bar != "" || got[1].Holds || !strings.Contains(got[1].Bar, "1.8") || !got[2].Holds || got[3].Holds {
		t.Errorf("%+v", got)
	}
}
