package build

import (
	"runtime/debug"
	"sync"
)

// binaryBytes is an upper bound on the resident memory of the program itself.
const binaryBytes = 32 << 20

// bounds sets the garbage collector's limit so that the process stays below the sum of
// the bounds of all builds running in it: the limit is per process.
var bounds memoryBounds

type memoryBounds struct {
	mu      sync.Mutex
	running int
	sum     int64
	before  int64 // the limit when no build is running
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
