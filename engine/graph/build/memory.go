package build

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
)

// binaryBytes is what a process has resident of its own program, at most.
const binaryBytes = 32 << 20

// resident is how much memory this process holds by itself, program included.
func resident() uint64 {
	return field("/proc/self/status", "RssAnon:", 0) + binaryBytes
}

// available is how much memory the machine, or the container, could still give.
func available() uint64 {
	free := field("/proc/meminfo", "MemAvailable:", 4<<30)
	most, ok := number("/sys/fs/cgroup/memory.max")
	used, known := number("/sys/fs/cgroup/memory.current")
	if ok && known {
		free = min(free, most-min(most, used))
	}
	return free
}

// number reads a file that holds nothing else.
func number(path string) (uint64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil // without a bound it says "max"
}

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

// field reads one number of kilobytes from a file of Linux; elsewhere it is what is
// assumed.
func field(path, name string, assumed uint64) uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return assumed
	}
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != name {
			continue
		}
		if n, err := strconv.ParseUint(string(words[1]), 10, 54); err == nil {
			return n << 10
		}
	}
	return assumed
}
