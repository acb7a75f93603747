package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/shape"
)

// Each cell is measured once, beside DistDGL, DDP and leap in the same setup.
func TestCells(t *testing.T) {
	list := cells()
	seen := map[string]bool{}
	for _, c := range list {
		if seen[c.key()] {
			t.Errorf("%s is there twice", c.key())
		}
		seen[c.key()] = true
		bases := []string{byMETIS, byDDP, byAuto}
		if c.part == "choice" {
			bases = []string{byLeap, byAuto}
		}
		for _, base := range bases {
			if !slices.ContainsFunc(list, func(b cell) bool { return b.at(c) && b.side.name == base }) {
				t.Errorf("%s stands beside no %s", c.key(), base)
			}
		}
		if !slices.ContainsFunc(list, func(b cell) bool { return b.at(c) && b.side.exact }) {
			t.Errorf("%s stands beside no exact strategy", c.key())
		}
		if c.side.framework == "distdgl" && c.side.cut == "" {
			t.Errorf("%s has no cut", c.key())
		}
	}
	var eight, unbounded bool
	for _, s := range setups(list) {
		eight = eight || s.nodes == 8
		unbounded = unbounded || s.rate == shape.Free
		if float64(s.nodes)*s.cores > 2 || batch%s.nodes != 0 {
			t.Errorf("%s asks for too much, or its batches can't be divided", s)
		}
	}
	if !eight || !unbounded || setups(list)[0] != usual {
		t.Errorf("%v", setups(list))
	}
}

// Sides that can't train in a setup are left out.
func TestHas(t *testing.T) {
	on := func(nodes int, name string) bool { s := usual; s.nodes = nodes; return s.has(sideOf(name)) }
	for name, want := range map[string][4]bool{ // on 1, 2, 4 and 8 nodes
		byLeap: {false, true, true, true}, "single": {true, true, false, false}, byAuto: {true, true, true, true}, byMETIS: {true, true, true, true},
	} {
		if got := [4]bool{on(1, name), on(2, name), on(4, name), on(8, name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestPick(t *testing.T) {
	all := cells()
	for _, c := range []struct {
		only, of string
		want     int
	}{{"all", "", len(all)}, {"headline", "all", 12}, {"headline", "2x16", 3}, {"cut,copies", "3x128", 4}} {
		got, err := pick(all, c.only, c.of)
		if err != nil || len(got) != c.want {
			t.Errorf("-only %q -models %q: %d cells, %v; want %d", c.only, c.of, len(got), err, c.want)
		}
	}
	if _, err := pick(all, "headline,none", ""); err == nil || !strings.Contains(err.Error(), `no part called "none"`) {
		t.Error(err)
	}
	if _, err := pick(all, "", "4x4"); err == nil || !strings.Contains(err.Error(), "3x128") {
		t.Error(err)
	}
}

// Our jobs have what the protocol says, and nothing else is set.
func TestRequests(t *testing.T) {
	for _, c := range cells() {
		if c.side.framework != "" {
			continue
		}
		r := c.request()
		if *r.Batch != batch || *r.Epochs != c.epochs || *r.EvalEvery != c.epochs || *r.Dropout != 0 || *r.WeightDecay != 0 || r.Norm != "none" || len(r.Fanout) != *r.Layers {
			t.Errorf("%s: %+v", c.key(), r)
		}
		if off := strings.Contains(c.side.name, "no cache"); off != (len(r.Set) == 1) {
			t.Errorf("%s sets %v", c.key(), r.Set)
		}
		if want := dataset(0); (strings.Contains(c.side.name, "no copies") || c.nodes == 1) != (r.Dataset == want) {
			t.Errorf("%s trains %s", c.key(), r.Dataset)
		}
		if !slices.Contains(c.setup.copies(), min(c.side.copies, c.nodes-1)) {
			t.Errorf("the mesh of %s has no dataset for it", c.key())
		}
	}
}
