package build

import (
	"runtime/debug"
	"sync"
)

// binaryBytes is what a process has resident of its own program, at most.
const binaryBytes = 32 << 20

// bounds has garbage collected early enough that the process stays below the bounds
// of the builds that run in it, all together: the limit is the process's own.
var bounds memoryBounds

type memoryBounds struct {
	mu      sync.Mutex
	running int
	sum     int64
	before  int64 // the limit while no build runs
}

func (m *memoryBounds) add(bound int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == 0 {
		m.before = debug.SetMemoryLimit(-1)
	}
	m.running++
	m.sum += bound
	debug.SetMemoryLimit(min(m.before, m.sum))
}

func (m *memoryBounds) remove(bound int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	m.sum -= bound
	if m.running == 0 {
		debug.SetMemoryLimit(m.before)
		return
	}
	debug.SetMemoryLimit(min(m.before, m.sum))
}
