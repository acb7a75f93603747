package workers

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// counts is a task that counts how often each chunk is done, and sees that no
// worker is at work twice.
type counts struct {
	done   []atomic.Int32
	busy   []atomic.Int32
	faults atomic.Int32
}

func (c *counts) Do(chunk, worker int) {
	if c.busy[worker].Add(1) != 1 {
		c.faults.Add(1)
	}
	c.done[chunk].Add(1)
	if chunk%7 == 0 {
		runtime.Gosched()
	}
	c.busy[worker].Add(-1)
}

func TestEachChunkIsDoneOnce(t *testing.T) {
	for _, size := range []int{1, 2, 3, 8} {
		p := New(size)
		for run := range 2000 {
			chunks := run % 37
			c := &counts{done: make([]atomic.Int32, chunks), busy: make([]atomic.Int32, size)}
			p.Run(chunks, c)
			for i := range c.done {
				if n := c.done[i].Load(); n != 1 {
					t.Fatalf("%d workers, run %d: chunk %d of %d was done %d times", size, run, i, chunks, n)
				}
			}
			if c.faults.Load() != 0 {
				t.Fatalf("%d workers, run %d: a worker did two chunks at once", size, run)
			}
		}
		p.Close()
	}
}

// meeting is a task whose chunks wait for one another.
type meeting struct{ here atomic.Int32 }

func (m *meeting) Do(_, _ int) {
	m.here.Add(1)
	for m.here.Load() < 2 {
		runtime.Gosched()
	}
}

func TestWorkersWorkAtOnce(t *testing.T) {
	p := New(2)
	defer p.Close()
	for range 200 {
		p.Run(2, &meeting{})
	}
}

// A late task has a helper that is done long after the caller is.
type late struct{ begun, done atomic.Bool }

func (l *late) Do(_, worker int) {
	if worker == 0 {
		for !l.begun.Load() {
			runtime.Gosched()
		}
		return
	}
	l.begun.Store(true)
	for range 20 * spins {
		runtime.Gosched()
	}
	l.done.Store(true)
}

func TestRunWaitsForHelpers(t *testing.T) {
	p := New(2)
	defer p.Close()
	for range 5 {
		l := &late{}
		p.Run(2, l)
		if !l.done.Load() {
			t.Fatal("a helper is still at work after the run")
		}
	}
}

type nothing struct{ sum [8]int }

func (n *nothing) Do(_, worker int) { n.sum[worker]++ }

func TestRunAllocatesNothing(t *testing.T) {
	p := New(4)
	defer p.Close()
	task := &nothing{}
	if n := testing.AllocsPerRun(500, func() { p.Run(9, task) }); n != 0 {
		t.Errorf("a run allocates %v times", n)
	}
}

func TestCloseEndsAll(t *testing.T) {
	before := runtime.NumGoroutine()
	p := New(8)
	p.Run(100, &nothing{})
	p.Close()
	// They have said that they end; that they have ended takes a moment longer.
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// spin is a chunk of some microseconds.
type spin struct{ x [64]uint64 }

func (s *spin) Do(_, worker int) { s.x[worker*16] = work(s.x[worker*16], 10_000) }

func work(x uint64, n int) uint64 {
	for range n {
		x = x*6364136223846793005 + 1
	}
	return x
}

// What a run costs beside its chunks: back to back, and with the caller alone at
// work in between.
func BenchmarkRun(b *testing.B) {
	p := New(2)
	defer p.Close()
	for _, c := range []struct {
		name    string
		between int
	}{{"BackToBack", 0}, {"After3us", 3000}, {"After30us", 30_000}, {"After300us", 300_000}} {
		b.Run("Empty/"+c.name, func(b *testing.B) {
			task := &nothing{}
			var x uint64
			for b.Loop() {
				x = work(x, c.between)
				p.Run(2, task)
			}
		})
		b.Run("10us/"+c.name, func(b *testing.B) {
			task := &spin{}
			var x uint64
			for b.Loop() {
				x = work(x, c.between)
				p.Run(2, task)
			}
		})
	}
	b.Run("Alone", func(b *testing.B) {
		var x uint64
		for b.Loop() {
			x = work(x, 10_000)
		}
	})
}
