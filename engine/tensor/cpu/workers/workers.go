// Package workers runs the chunks of one operation on a fixed set of goroutines.
package workers

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hopmesh/hopmesh/engine/mapped"
)

// A Task is work in chunks that any worker may run in any order.
type Task interface {
	// Do runs one chunk. worker is below Pool.Size and no two concurrent calls share it,
	// so it may index scratch memory.
	Do(chunk, worker int)
}

// spins is how often an idle worker checks for work before it sleeps, some ten
// microseconds: operations follow one another faster than a worker wakes.
const spins = 10_000

// Bits of Pool.state. The lowest bits count the active helpers.
const (
	open    = 1 << 31 // helpers may join
	waiting = 1 << 30 // the caller sleeps until the last helper is done
	helping = waiting - 1
	run     = 1 << 32 // unit of the run number
)

// A Pool runs one Task at a time. Its caller is worker 0. The others join a run if they
// are in time, and are not waited for otherwise.
type Pool struct {
	size    int
	spins   int
	task    Task
	chunks  int64
	helpers []helper
	idle    chan struct{} // wakes the waiting caller
	ended   sync.WaitGroup
	closed  atomic.Bool
	failed  atomic.Pointer[any] // what a helper has panicked with

	_     [128]byte
	state atomic.Uint64
	_     [120]byte
	next  atomic.Int64
	_     [120]byte
}

type helper struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [112]byte
}

// New starts size-1 goroutines; Close ends them.
func New(size int) *Pool {
	p := &Pool{size: size, helpers: make([]helper, size-1), idle: make(chan struct{}, 1)}
	if size <= runtime.GOMAXPROCS(0) {
		p.spins = spins // otherwise spinning would take others' cores
	}
	for i := range p.helpers {
		p.helpers[i].wake = make(chan struct{}, 1)
		p.ended.Go(func() { p.help(i + 1) })
	}
	return p
}

// Size returns the number of workers.
func (p *Pool) Size() int { return p.size }

// Close ends the workers.
func (p *Pool) Close() {
	p.closed.Store(true)
	for i := range p.helpers {
		p.helpers[i].rouse()
	}
	p.ended.Wait()
}

// Run runs all chunks and returns when they are done. It does not allocate.
func (p *Pool) Run(chunks int, t Task) {
	if chunks <= 1 || p.size == 1 {
		for c := range chunks {
			t.Do(c, 0)
		}
		return
	}
	// These are not read while the run is not open and no helper is active.
	p.task, p.chunks = t, int64(chunks)
	p.next.Store(0)
	p.state.Store(p.state.Load()&^(run-1) + run + open)
	for i := range min(chunks, p.size) - 1 {
		p.helpers[i].rouse()
	}
	defer p.end() // also if a chunk panics
	p.work(0)
}

// end ends a run. A panic of a helper becomes one of the caller.
func (p *Pool) end() {
	p.finish()
	p.task = nil
	if p.failed.Load() != nil {
		panic(*p.failed.Swap(nil))
	}
}

// finish closes the run to helpers and waits for the active ones.
func (p *Pool) finish() {
	if p.state.And(^uint64(open))&helping == 0 {
		return
	}
	for range p.spins {
		if p.state.Load()&helping == 0 {
			return
		}
	}
	if p.state.Or(waiting)&helping != 0 {
		<-p.idle
	}
}

func (p *Pool) work(worker int) {
	for {
		c := p.next.Add(1) - 1
		if c >= p.chunks {
			return
		}
		p.task.Do(int(c), worker)
	}
}

// assist is work of a helper.
func (p *Pool) assist(worker int) {
	defer func() {
		if fault := recover(); fault != nil {
			p.fail(fault)
		}
	}()
	p.work(worker)
}

// fail keeps the first panic. It is a function of its own since only then it allocates.
func (p *Pool) fail(fault any) { p.failed.CompareAndSwap(nil, &fault) }

// help joins run after run.
func (p *Pool) help(worker int) {
	defer mapped.End(mapped.Guard())
	me := &p.helpers[worker-1]
	var last uint64 // the last run this helper joined
	for spun := 0; !p.closed.Load(); {
		s := p.state.Load()
		if s&open != 0 && s/run != last {
			if p.state.CompareAndSwap(s, s+1) {
				last = s / run
				p.assist(worker)
				if after := p.state.Add(^uint64(0)); after&waiting != 0 && after&helping == 0 {
					p.idle <- struct{}{}
				}
				spun = 0
			}
			continue
		}
		if spun++; spun < p.spins {
			continue
		}
		spun = 0
		me.asleep.Store(true)
		// A run that opened before asleep was set did not wake this helper.
		if s := p.state.Load(); p.closed.Load() || s&open != 0 && s/run != last {
			if me.asleep.CompareAndSwap(true, false) {
				continue
			}
		}
		<-me.wake
	}
}

// rouse wakes a helper if it sleeps.
func (h *helper) rouse() {
	if h.asleep.Load() && h.asleep.CompareAndSwap(true, false) {
		h.wake <- struct{}{}
	}
}
