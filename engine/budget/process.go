package budget

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"
)

const (
	// uncounted is what the process holds that the Go runtime does not count: variables of
	// the binary, and what the kernel rounds up.
	uncounted = 4 << 20
	// leastHeap is what the Go heap may always take. A smaller limit would have the
	// collector run all the time, for the sake of a bound that is broken anyway.
	leastHeap = 32 << 20
	// tightPercent is how much the heap may grow between collections where mapped memory is
	// what counts.
	tightPercent = 25
	// calm is how long nothing must run before memory is given back, so that a daemon that
	// is asked for one thing after another does not collect after each.
	calm = time.Second
	// muchLeft is how much of what the heap holds beside what lives is given back before
	// something begins within calm of something else. Memory outside of the heap would come on
	// top of it.
	muchLeft = 32 << 20
)

// holding is what this process holds and may hold.
var holding = account{set: debug.SetMemoryLimit, heap: heapInUse, left: heapHeld, free: giveBack}

// account knows the memory that a process takes outside of the Go heap, and has the heap
// keep to what is left of the bound.
type account struct {
	set  func(limit int64) int64
	heap func() int64 // what is in use of it
	left func() int64 // what it holds, in use or not; called without mu
	free func()

	mu      sync.Mutex
	bound   uint64 // 0: none
	outside int64
	narrow  []*int64 // limits of the heap that hold for a time
	before  int64    // the heap's limit while nothing here limits it
	limited bool     // the heap's limit is this account's
	running int
	quiet   chan struct{} // buffered; nil: memory is not given back
}

// Govern bounds what this process holds, and from then on has it give back memory when
// nothing runs any more. A bound of 0 is none. It is for processes that are one daemon and
// nothing else.
func Govern(bound uint64) {
	if _, limited := ownLimit(proc.limits, "Max data size"); limited {
		// What the heap once had stays mapped, and no arena can use it.
		debug.SetGCPercent(tightPercent)
	}
	collector.allow()
	holding.govern(bound)
}

// Outside adds to what this process holds outside of the Go heap, in bytes. A negative
// number is given back.
func Outside(bytes int) { holding.add(int64(bytes)) }

// Spare returns how much more may be taken outside of the Go heap without need: within the
// bound, and beside what the heap holds.
func Spare() int { return holding.spare() }

// Narrow limits the Go heap further until widen is called. The limits of several callers
// add up.
func Narrow(heap int64) (widen func()) { return holding.narrowed(heap) }

// Begin says that something runs that takes memory: a job, an import, a prediction. end
// must be called once. When the last has ended, the process gives back what it can.
func Begin() (end func()) { return holding.begin() }

func (a *account) govern(bound uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bound = min(bound, math.MaxInt64/2)
	if a.quiet == nil {
		a.quiet = make(chan struct{}, 1)
		go a.tend()
	}
	a.apply()
}

func (a *account) add(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outside += bytes
	if a.bound > 0 {
		a.apply()
	}
}

func (a *account) spare() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bound == 0 {
		return math.MaxInt
	}
	return int(max(0, int64(a.bound)-a.outside-uncounted-leastHeap-a.heap()))
}

func (a *account) narrowed(heap int64) (widen func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := &heap
	a.narrow = append(a.narrow, limit)
	a.apply()
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.narrow = slices.DeleteFunc(a.narrow, func(l *int64) bool { return l == limit })
		a.apply()
	}
}

// apply sets the heap's limit. Called with mu held.
func (a *account) apply() {
	limits := a.bound > 0 || len(a.narrow) > 0
	switch {
	case !limits && !a.limited:
		return
	case !limits:
		a.set(a.before)
		a.limited = false
		return
	case !a.limited:
		a.before = a.set(-1)
		a.limited = true
	}
	limit := a.before
	if len(a.narrow) > 0 {
		sum := int64(0)
		for _, l := range a.narrow {
			sum += *l
		}
		limit = min(limit, sum)
	}
	if a.bound > 0 {
		limit = min(limit, max(leastHeap, int64(a.bound)-a.outside-uncounted))
	}
	a.set(limit)
}

func (a *account) begin() (end func()) {
	a.mu.Lock()
	first := a.running == 0 && a.quiet != nil
	a.running++
	a.mu.Unlock()
	// What lives stays, so a collection for its sake would be in vain.
	if first && a.left()-a.heap() > muchLeft {
		a.free()
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.running--
		if a.running > 0 || a.quiet == nil {
			return
		}
		select {
		case a.quiet <- struct{}{}:
		default:
		}
	})
}

// tend gives back memory whenever nothing has run for a while.
func (a *account) tend() {
	for range a.quiet {
		time.Sleep(calm)
		a.mu.Lock()
		// If something runs, or has ended meanwhile, this is woken again.
		busy := a.running > 0 || len(a.quiet) > 0
		a.mu.Unlock()
		if !busy {
			a.free()
		}
	}
}

// heapInUse returns how much of the Go heap was reachable when it was last collected.
func heapInUse() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// heapHeld returns what the Go heap holds of the system's memory.
func heapHeld() (bytes int64) {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s)
	for i := range s {
		bytes += int64(s[i].Value.Uint64())
	}
	return bytes
}

// giveBack returns to the system what nobody uses. Pools keep what they hold over one
// collection.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}
