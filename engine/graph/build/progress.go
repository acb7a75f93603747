package build

import (
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A reporter reports progress at most ten times a second, and at the beginning and end of
// each stage. It is safe for concurrent use.
type reporter struct {
	mu   sync.Mutex
	to   func(graph.Progress)
	now  graph.Progress
	last time.Time
}

const reportEvery = 100 * time.Millisecond

func (r *reporter) begin(stage string, total uint64, unit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = graph.Progress{Stage: stage, Total: total, Unit: unit}
	r.tell()
}

func (r *reporter) add(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Done += n
	if time.Since(r.last) >= reportEvery {
		r.tell()
	}
}

// share sets the completed share of the stage.
func (r *reporter) share(done float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Done = uint64(min(max(done, 0), 1) * float64(r.now.Total))
	if time.Since(r.last) >= reportEvery {
		r.tell()
	}
}

func (r *reporter) tell() {
	r.last = time.Now()
	if r.to != nil {
		r.to(r.now)
	}
}

// inBytes formats a number of bytes for display.
func inBytes(n uint64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	v := float64(n) / 1024
	for i, unit := range units {
		if v < 1024 || i == len(units)-1 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		v /= 1024
	}
	return ""
}
