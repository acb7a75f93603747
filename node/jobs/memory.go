package jobs

import (
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Memory is what a job takes on a node, in bytes.
type Memory struct {
	Forecast uint64   `json:"forecast"` // before the node took any; 0: not known
	Taken    uint64   `json:"taken"`    // the most that the process held beside what it held before
	FellBack []string `json:"fell_back,omitempty"`
}

// peakEvery is how often a process looks at what it holds while a job runs.
const peakEvery = 100 * time.Millisecond

// memories knows the memory of the jobs that this node has run since it started.
type memories struct {
	mu sync.Mutex
	of map[string]*memory // by job
}

// memory is one job's, over all its runs here.
type memory struct {
	mu    sync.Mutex
	known Memory
	peak  *budget.Peak // nil: it does not run
}

// job returns a job's memory, of which nothing is known at first.
func (m *memories) job(id string) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*memory{}
	}
	if m.of[id] == nil {
		m.of[id] = new(memory)
	}
	return m.of[id]
}

func (m *memories) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, id)
}

// watch measures what the process comes to hold until end is called.
func (m *memory) watch() (end func()) {
	p := budget.WatchPeak(peakEvery)
	m.mu.Lock()
	m.peak = p
	m.mu.Unlock()
	return func() {
		taken := p.Stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.known.Taken, m.peak = max(m.known.Taken, taken), nil
	}
}

// announce records a forecast. That of the last run counts.
func (m *memory) announce(f *train.Forecast) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Forecast, m.known.FellBack = f.Arenas, slices.Clone(f.FellBack)
}

func (m *memory) read() Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.known
	if m.peak != nil {
		k.Taken = max(k.Taken, m.peak.Taken())
	}
	return k
}

// Memory returns what a job takes or took on this node, and false if it has not run here
// since the node started.
func (r *Runner) Memory(job string) (Memory, bool) {
	r.memories.mu.Lock()
	m := r.memories.of[job]
	r.memories.mu.Unlock()
	if m == nil {
		return Memory{}, false
	}
	return m.read(), true
}
