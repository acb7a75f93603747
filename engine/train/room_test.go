package train

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/session"
)

// Rows that are kept get half of what is left. Nodes of one machine share that, and each keeps to
// its own bound.
func TestRoomToKeep(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		memory, free, need uint64
		nodes              int
		want               func(takes uint64) uint64 // what is needed, with a margin
	}{
		"alone":                            {0, 1000 * mib, 200 * mib, 1, func(n uint64) uint64 { return (1000*mib - n) / 2 }},
		"four of a machine":                {0, 1000 * mib, 200 * mib, 4, func(n uint64) uint64 { return (1000*mib - n) / 8 }},
		"a bound":                          {300 * mib, 1000 * mib, 200 * mib, 1, func(n uint64) uint64 { return (300*mib - n) / 2 }},
		"four with a bound each":           {300 * mib, 1000 * mib, 200 * mib, 4, func(n uint64) uint64 { return (300*mib - n) / 2 }},
		"bounds beyond the machine":        {900 * mib, 1000 * mib, 200 * mib, 4, func(uint64) uint64 { return 1000 * mib / 8 }},
		"nothing is left":                  {0, 1000 * mib, 2000 * mib, 2, func(uint64) uint64 { return 0 }},
		"a bound of which nothing is left": {100 * mib, 1000 * mib, 200 * mib, 1, func(uint64) uint64 { return 0 }},
	} {
		tr := &Trainer{
			Options: Options{Memory: c.memory, Measure: func() budget.Memory { return budget.Memory{Machine: 7, Process: 1, Free: c.free} }},
			Session: &session.Session{OnMachine: c.nodes},
		}
		var need Needs
		need.Add(budget.Graph, c.need)
		if got, want := tr.roomToKeep(&need), c.want(need.OnHost()); got != want {
			t.Errorf("%s: %d MiB, want %d", name, got/mib, want/mib)
		}
	}
}
