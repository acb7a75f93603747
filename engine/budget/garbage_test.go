package budget

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// The heap grows by a number of bytes while something runs, and as before when nothing does.
func TestLittleGarbageIsKeptWhileRunsTrain(t *testing.T) {
	percent, live, sets, called := usualPercent, int64(10<<20), 0, 0
	s := sweeper{
		live: func() int64 { return live },
		set: func(to int) int {
			was := percent
			percent = to
			sets++
			return was
		},
		each: func(func() bool) { called++ },
	}
	check := func(what string, want int) {
		t.Helper()
		if percent != want {
			t.Errorf("%s: the heap may grow by %d %%, not %d", what, percent, want)
		}
	}
	s.begin()()
	check("in a process of others", usualPercent)
	if sets > 0 {
		t.Error("something is set in a process of others")
	}
	s.allow()
	first := s.begin()
	check("a small heap", usualPercent)
	live = 4 * mostGarbage
	if !s.collected() {
		t.Error("it wants to hear of no more collections while something runs")
	}
	check("a larger heap", 25)
	second, before := s.begin(), sets
	live = 4*mostGarbage + mostGarbage/8
	s.collected()
	if check("nearly the same", 25); sets != before {
		t.Error("the world is stopped for a small change")
	}
	live = 100 * mostGarbage
	s.collected()
	check("a very large heap", leastPercent)
	first()
	first() // counts once
	check("one still runs", leastPercent)
	live = 1 << 20
	s.collected()
	check("a small heap again", usualPercent)
	live = 4 * mostGarbage
	s.collected()
	second()
	check("nothing runs", usualPercent)
	third := s.begin() // before the next collection
	if !s.collected() || called != 1 {
		t.Errorf("%d chains of calls are under way", called)
	}
	third()
	if s.collected() {
		t.Error("it wants to hear of collections when nothing runs")
	}
	s.begin()()
	if called != 2 {
		t.Errorf("%d chains of calls were begun, not 2", called)
	}
	percent = 40 // by whoever started the process
	s.begin()()
	check("what the user has set", 40)
}

func TestEachCollectionIsHeardOf(t *testing.T) {
	var heard atomic.Int32
	afterEach(func() bool { return heard.Add(1) < 3 })
	for heard.Load() < 3 {
		runtime.GC()
		runtime.Gosched()
	}
	// Another one hears of later collections, of which the first must hear of none.
	var later atomic.Int32
	afterEach(func() bool { return later.Add(1) < 2 })
	for later.Load() < 2 {
		runtime.GC()
		runtime.Gosched()
	}
	if n := heard.Load(); n != 3 {
		t.Errorf("it is called %d times", n)
	}
}
