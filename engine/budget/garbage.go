package budget

import (
	"runtime"
	"runtime/debug"
	"sync"
)

const (
	// mostGarbage is how much the Go heap may grow between two collections while runs train.
	// By default it may grow by as much as lives on it: what a run counts, twice. Nearly all of
	// that is numbers, which the collector does not look through, so that it costs little to
	// collect by the bytes that are let go instead.
	mostGarbage = 32 << 20
	// leastPercent has a large heap grow by more than that, since what the collector does look
	// through grows with it.
	leastPercent, usualPercent = 15, 100
)

// collector is this process's, while it is kept to mostGarbage.
var collector = sweeper{set: debug.SetGCPercent, live: heapInUse, each: afterEach}

// A sweeper sets how much the Go heap may grow until the next collection.
type sweeper struct {
	set  func(percent int) int
	live func() int64
	each func(do func() bool) // has do called after each collection, until it returns false

	mu      sync.Mutex
	on      bool // this process may be kept to it
	running int
	called  bool // each goes on
	percent int
}

// Tidy has the Go heap keep little garbage until end is called, in a process that is
// governed and whose collector nobody has set otherwise. end must be called once.
func Tidy() (end func()) { return collector.begin() }

// allow lets runs keep the heap tidy.
func (s *sweeper) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = true
}

func (s *sweeper) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == 0 {
		if !s.on {
			return func() {}
		}
		if s.percent = s.set(usualPercent); s.percent != usualPercent {
			s.set(s.percent)
			return func() {}
		}
		s.apply()
	}
	s.running++
	if !s.called {
		s.called = true
		s.each(s.collected)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running--; s.running == 0 {
			s.set(usualPercent)
		}
	})
}

// collected is called after each collection, and reports whether it is to be called again.
func (s *sweeper) collected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.called = s.running > 0; s.called {
		s.apply()
	}
	return s.called
}

// apply sets the percentage by what lives. Each change stops the world for a moment, so that
// small ones are not made. Called with mu held.
func (s *sweeper) apply() {
	to := usualPercent
	if live := s.live(); live > mostGarbage {
		to = max(leastPercent, int(usualPercent*mostGarbage/live))
	}
	if change := to - s.percent; 10*max(change, -change) > s.percent {
		s.set(to)
		s.percent = to
	}
}

// afterEach has do called after each collection, in a goroutine of the runtime's, until it
// returns false.
func afterEach(do func() bool) {
	type mark struct{ do func() bool } // nothing refers to it
	var again func(*mark)
	again = func(m *mark) {
		if m.do() {
			runtime.SetFinalizer(m, again)
		}
	}
	runtime.SetFinalizer(&mark{do}, again)
}
