package main

import (
	"slices"
	"strings"
	"testing"
)

// Our loops stand beside both of DistDGL's, with equal batches that can be divided.
func TestLoaderCells(t *testing.T) {
	list := loaderCells()
	if len(list) != len(hops)*len(loops) {
		t.Errorf("%d cells", len(list))
	}
	for _, c := range list {
		if !c.side.loop || c.nodes != loaderNodes || c.batch()%c.nodes != 0 || len(c.fanouts) != c.layers {
			t.Errorf("%+v", c)
		}
		if !slices.Contains(c.setup.copies(), min(c.side.copies, c.nodes-1)) {
			t.Errorf("the mesh of %s has no dataset for it", c.key())
		}
		if strings.Contains(c.settings(), "batch 1024,") {
			t.Errorf("%s has the batch of trainings", c.settings())
		}
		if c.side.framework == "" {
			continue
		}
		text := strings.Join(job{cell: c, parts: "p", weights: "w"}.arguments("m"), " ")
		if !strings.HasSuffix(text, " --loop") || !strings.Contains(text, "--batch 342 ") {
			t.Errorf("%s: %s", c.key(), text)
		}
	}
	if text := strings.Join(list[2].loopArguments(), " "); text != "--dataset copies1 --fanouts 10,10 --batch 1026 --epochs 4 --seed 1" {
		t.Error(text)
	}
	for _, c := range cells() {
		if text := strings.Join(job{cell: c}.arguments("m"), " "); strings.Contains(text, "--loop") {
			t.Errorf("%s only loops", c.key())
		}
	}
}

// The bars take the faster of DistDGL's loops, and the worst case of ours.
func TestLoaderBars(t *testing.T) {
	var found all
	for i, c := range loaderCells() {
		found = append(found, figures{cell: c, later: []float64{4, 5, 1, 3, 10, 8, 6, 2}[i]})
	}
	got := found.loaderBars()
	if got[0].value != 0.75 || got[0].cases != 2 || got[0].verdict() != "FALLS SHORT" || got[1].value != 0.75 {
		t.Errorf("%+v", got)
	}
	if got := (all{}).loaderBars(); got[0].verdict() != "not measured" {
		t.Errorf("%+v", got)
	}
}
