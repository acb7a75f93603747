//go:build long

package main

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/stats"
)

// Cora with two copies of each shard on three daemons: an epoch of auto takes about what one of single
// takes. Jobs take turns, so that what else the machine does slows both down.
func TestAutoTakesNoLongerThanSingle(t *testing.T) {
	const pairs, most = 21, 1.1
	d := meshOf(t, 3)[0]
	if out, diag, code := hopmesh(t, "dataset", "import", "cora", coraFile, "--replicas", "2", "--addr", "unix:"+d.dir+"/hopmesh.sock"); code != 0 {
		t.Fatalf("%s%s", out, diag)
	}
	median := func(by string) float64 {
		j := d.finished(d.begin("--hidden", "16", "--epochs", "400", "--strategy", by))
		if len(j.Nodes) != 1 || len(j.History) != 400 {
			t.Fatalf("%s ran on %v for %d epochs: %s", by, j.Nodes, len(j.History), j.Why)
		}
		var all []float64
		for _, e := range j.History[20:] {
			all = append(all, e.Seconds+e.Eval.Seconds)
		}
		return stats.Median(all)
	}
	// Two jobs that follow each other are disturbed alike, mostly: the median of their ratios says more
	// than the quickest job of each, which may have had the machine to itself. On a busy machine it takes
	// more pairs.
	var ratios []float64
	for len(ratios) < 7 || len(ratios) < pairs && stats.Median(ratios) > most {
		ratios = append(ratios, median("auto")/median("single"))
	}
	ratio := stats.Median(ratios)
	t.Logf("auto takes %.2fx of single (the median of %d pairs of jobs)", ratio, len(ratios))
	if ratio > most {
		t.Errorf("auto takes %.2f times as long as single, and may take %.2f", ratio, most)
	}
}
