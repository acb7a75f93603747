package read

import (
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A teller tells how far a pass has come, ten times a second at most.
type teller struct {
	report   func(graph.Progress)
	progress graph.Progress
	told     time.Time
}

func newTeller(o Options, stage string, total uint64, unit string) *teller {
	return &teller{report: o.Report, progress: graph.Progress{Stage: stage, Total: total, Unit: unit}}
}

func (t *teller) at(done uint64) {
	if t.report == nil {
		return
	}
	if now := time.Now(); now.Sub(t.told) >= 100*time.Millisecond || done == t.progress.Total {
		t.told = now
		t.progress.Done = done
		t.report(t.progress)
	}
}
