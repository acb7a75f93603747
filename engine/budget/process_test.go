package budget

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// recorded returns an account that sets a limit of its own, which was set before.
func recorded(before int64) (a *account, limit *int64) {
	limit = &before
	return &account{free: func() {}, heap: func() int64 { return 20 << 20 }, left: func() int64 { return 20<<20 + muchLeft }, set: func(to int64) int64 {
		was := *limit
		if to >= 0 {
			*limit = to
		}
		return was
	}}, limit
}

func TestTheHeapKeepsToWhatIsLeft(t *testing.T) {
	a, limit := recorded(math.MaxInt64)
	check := func(what string, want int64) {
		t.Helper()
		if *limit != want {
			t.Errorf("%s: the heap may take %d MiB, not %d", what, *limit>>20, want>>20)
		}
	}
	a.add(100 << 20)
	check("without a bound", math.MaxInt64)
	widen := a.narrowed(900 << 20)
	check("narrowed", 900<<20)
	a.bound = 300 << 20
	a.add(0)
	check("bound", 196<<20)
	if got := a.spare(); got != (300-100-20)<<20-uncounted-leastHeap {
		t.Errorf("%d MiB are to spare", got>>20)
	}
	a.add(50 << 20)
	check("with another arena", 146<<20)
	widenMore := a.narrowed(-800 << 20)
	check("narrowed further, in sum", 100<<20)
	widenMore()
	a.add(140 << 20)
	check("all taken", leastHeap)
	if got := a.spare(); got != 0 {
		t.Errorf("%d MiB are to spare of nothing", got>>20)
	}
	a.add(-290 << 20)
	check("all given back", 296<<20)
	widen()
	check("not narrowed", 296<<20)
	a.bound = 0
	a.apply()
	check("not bound", math.MaxInt64)
	if got := a.spare(); got != math.MaxInt {
		t.Errorf("%d bytes are to spare without a bound", got)
	}
}

// Builds that overlap share the process's limit, and leave it as it was.
func TestNarrowLimitsAddUp(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	check := func(want int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("the limit is %d and should be %d", got, want)
		}
	}
	first := Narrow(4 << 30)
	check(4 << 30)
	second := Narrow(6 << 30)
	check(10 << 30)
	first()
	check(6 << 30)
	second()
	check(before)
}

// Memory is given back once after the last has ended, and not while something runs.
func TestMemoryIsGivenBackWhenNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := recorded(math.MaxInt64)
		freed := 0
		a.free = func() { freed++ }
		a.begin()() // before it is governed
		a.govern(1 << 30)
		defer close(a.quiet)
		check := func(what string, want int) {
			t.Helper()
			time.Sleep(3 * calm) // what ends in quick succession is waited for twice
			synctest.Wait()
			if freed != want {
				t.Errorf("%s: given back %d times, not %d", what, freed, want)
			}
		}
		first, second := a.begin(), a.begin()
		first()
		first() // counts once
		check("one still runs", 0)
		second()
		third := a.begin()
		check("another has begun", 0)
		third()
		for range 5 { // in quick succession
			a.begin()()
		}
		check("all have ended", 1)
		a.begin()()
		a.left = func() int64 { return a.heap() + muchLeft + 1 }
		fourth := a.begin() // at once
		if freed != 2 {
			t.Errorf("much is left, and given back %d times, not 2, before something begins", freed)
		}
		a.begin()()
		fourth()
		check("all have ended again", 3)
	})
}

// What a pool holds and nobody uses is returned to the system.
func TestGiveBack(t *testing.T) {
	big := make([]byte, 256<<20)
	for i := range len(big) / 4096 {
		big[i*4096] = 1
	}
	full := Resident()
	runtime.KeepAlive(big)
	giveBack()
	if left := Resident(); full < 256<<20 || left > full-200<<20 {
		t.Errorf("%s are left of %s", Format(left), Format(full))
	}
}

func TestCaught(t *testing.T) {
	try := func(fault any) (err error) {
		defer Caught(&err)
		if fault != nil {
			panic(fault)
		}
		return nil
	}
	none := errors.New("no memory")
	err := try(&Exhausted{Wants: 3 << 20, Holds: 1 << 20, Err: none})
	if want := "the system gives no 3.0 MiB of memory to an arena that holds 1.0 MiB (no memory): take smaller batches, a smaller model or more nodes, or raise the process's limit"; !errors.Is(err, none) || err.Error() != want {
		t.Errorf("%v", err)
	}
	if err := try(nil); err != nil {
		t.Error(err)
	}
	defer func() {
		if got := recover(); got != "another" {
			t.Errorf("another panic became %v", got)
		}
	}()
	_ = try("another")
}

func TestPeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Uint64
		now.Store(100)
		p := watchPeak(50*time.Millisecond, now.Load)
		for _, n := range []uint64{130, 250, 90} {
			now.Store(n)
			time.Sleep(60 * time.Millisecond)
			synctest.Wait()
		}
		if got := p.Taken(); got != 150 {
			t.Errorf("took %d, not 150", got)
		}
		now.Store(400)
		if got := p.Stop(); got != 300 {
			t.Errorf("took %d by the end, not 300", got)
		}
	})
	if Own() < 1<<20 {
		t.Errorf("this process holds %d bytes", Own())
	}
}
