package speedup

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// One node trains alone, several share; nothing else differs.
func TestJobs(t *testing.T) {
	for _, m := range models {
		one, four := usual.ask(m, "g", 1, 4), usual.ask(m, "g", 4, 4)
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
	if r := apart.ask(models[0], "g", 1, 4); r.Strategy != "grappa" || len(r.Set) != 1 {
		t.Errorf("grappa on one node: %+v", r)
	}
	if r := little.ask(models[0], "g", 4, 4); len(r.Set) != 1 || r.Set[0].Key != "leap.cache" || r.Set[0].Value != "36735" {
		t.Errorf("a quarter of the rows: %+v", r.Set)
	}
}

// Each cell has one of one node to be compared with, and cells of one crew follow each other.
func TestCells(t *testing.T) {
	all := cells()
	crews := map[string]bool{}
	for i := range all {
		bases := 0
		for k := range all {
			if all[k].base(&all[i]) {
				bases++
			}
		}
		if bases != 1 {
			t.Errorf("%s, %d nodes, %s has %d cells to be compared with", all[i].Network, all[i].Nodes, all[i].name(), bases)
		}
		crew := fmt.Sprint(all[i].Network, all[i].Nodes)
		if (i == 0 || crew != fmt.Sprint(all[i-1].Network, all[i-1].Nodes)) && crews[crew] {
			t.Errorf("%s comes again", crew)
		}
		crews[crew] = true
	}
	if len(crews) != 10 {
		t.Errorf("%d crews: %v", len(crews), crews)
	}
	if c := chart(all); len(c.Rows) != 8 || len(c.Panels[0].Marks) != len(c.Series) || len(c.Panels[0].Marks[0]) != len(c.Rows) || len(c.Panels[0].Marks[2]) != len(c.Rows) {
		t.Errorf("%d rows of the chart", len(c.Rows))
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
		{Network: "a", Nodes: 4, Model: "3 x 16", Way: little.name, Speedup: 1.6},
		{Network: networks[2].name, Nodes: 4, Model: "3 x 16", Speedup: 2.3},
		{Network: networks[2].name, Nodes: 8, Model: "3 x 16", Speedup: 2.2},
	})
	if !got[4].Holds || !strings.Contains(got[4].Bar, "1.5") || got[5].Bar != "" || got[6].Holds || got[6].Ceiling != 2.3 {
		t.Errorf("%+v", got[4:])
	}
	if got = got[:4]; got[0].Bar != "" || got[1].Holds || !strings.Contains(got[1].Bar, "1.8") || !got[2].Holds || got[3].Holds {
		t.Errorf("%+v", got)
	}
}

// Each round is compared with its own time of one node, and odd rounds count for nothing.
func TestRoundsAreCompared(t *testing.T) {
	const second = time.Second
	measured := job{way: usual}
	cells := []Cell{
		{Network: "a", Nodes: 1, Model: "m", job: measured, rounds: []reading{{2, 1, 4 * second}, {2, 2, 4 * second}, {2, 9, 4 * second}}},
		{Network: "a", Nodes: 4, Model: "m", job: measured, rounds: []reading{{1, 0.5, 6 * second}, {3, 1, 8 * second}, {2, 1, 6 * second}}},
		{Network: "b", Nodes: 1, Model: "m", job: measured, rounds: []reading{{1, 3, 0}, {1, 3, 0}, {1, 3, 0}}},
		{Network: "b", Nodes: 4, Model: "m", job: measured, rounds: []reading{{1, 1, 0}, {1, 1, 0}, {1, 6, 0}}},
	}
	compare(cells)
	for i, want := range []Cell{{First: 2, Later: 2, Speedup: 1, Ceiling: 1}, {First: 2, Later: 1, Speedup: 2, Ceiling: 2.4}, {First: 1, Later: 3, Speedup: 1, Ceiling: 1}, {First: 1, Later: 1, Speedup: 3, Ceiling: 2.4}} {
		if c := cells[i]; c.First != want.First || c.Later != want.Later || c.Speedup != want.Speedup || c.Ceiling != want.Ceiling {
			t.Errorf("%s, %d nodes: %+v, want %+v", c.Network, c.Nodes, c, want)
		}
	}
}
