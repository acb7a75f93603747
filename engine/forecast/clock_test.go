package forecast

import (
	"runtime"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A step is timed only where there is room for it. What was taken for one serves the next.
func TestAStepThatDoesNotFitIsNotTimed(t *testing.T) {
	of := func(slot, pass, beside uint64) *sizes {
		z := &sizes{}
		z.Slot = slot << 20
		z.Set(budget.Pass, pass<<20)
		z.Set(budget.Beside, beside<<20)
		return z
	}
	left := uint64(100 << 20)
	c := &clock{left: func() uint64 { return left }}
	if err := c.fits(of(40, 50, 5)); err != nil {
		t.Fatal(err)
	}
	left = 5 << 20
	if err := c.fits(of(60, 40, 0)); err != nil {
		t.Errorf("what was taken before is not used again: %v", err)
	}
	if err := c.fits(of(80, 40, 0)); err == nil || !strings.Contains(err.Error(), "which needs 120.0 MiB of memory, and has 105.0 MiB") {
		t.Error(err)
	}
}

// A process with fewer processors than threads has them wait for each other.
func TestThreadsShareProcessors(t *testing.T) {
	threads := float64(runtime.GOMAXPROCS(0))
	if r := (Rates{Cores: threads / 4}); r.Slower() != 4 || (Rates{}).Slower() != 1 || (Rates{Cores: 2 * threads}).Slower() != 1 {
		t.Error(r.Slower())
	}
}

// What nodes send keeps processors busy, whatever is hidden behind what.
func TestBusyProcessorsDoNoMoreThanTheyCan(t *testing.T) {
	rates := Rates{Bandwidth: 100, Byte: 0.5, Question: 3}
	var all peer.Counts
	all.Bytes[peer.Feature], all.Requests[peer.Gradient] = 80, 4
	if b := rates.effort(&all, 4); b != 13 {
		t.Error(b)
	}
	if b := (Rates{Bandwidth: 100}).effort(&all, 4); b != 0 {
		t.Error(b)
	}
}

// The first step is prepared before anything is computed, and the last is computed while
// nothing is prepared.
func TestStepsOverlapInBetween(t *testing.T) {
	of := func(prepare, hidden, compute, wait, busy float64) *timing {
		return &timing{sum: Parts{Prepare: prepare, Hidden: hidden, Compute: compute, Wait: wait}, steps: 2, busy: busy}
	}
	for _, c := range []struct {
		t    *timing
		f    float64
		want float64
	}{
		{of(2, 4, 1, 1, 0), 1, 7}, {of(2, 4, 1, 1, 0), 5, 31}, {of(1, 1, 4, 4, 0), 5, 41}, {of(0, 0, 4, 4, 0), 5, 40},
		{of(1, 1, 4, 4, 9), 5, 45}, {of(2, 4, 1, 1, 0), 0.5, 4},
	} {
		if _, got := c.t.epoch(c.f); got != c.want {
			t.Errorf("%+v times %g: %g s, not %g", c.t, c.f, got, c.want)
		}
	}
}

// What waits in front of an answer has been asked for by others than the one that asks.
func TestAnswersWaitBehindThoseOfOthers(t *testing.T) {
	v := &Volume{Hidden: queue}
	for _, c := range []struct {
		nodes, workers int
		want           float64
	}{{1, 1, 0}, {2, 1, 0}, {2, 2, 0.25}, {3, 1, 0.25}, {5, 1, 0.375}, {101, 1, 0.495}} {
		if got := v.share(c.nodes, c.workers); got != c.want {
			t.Errorf("%d nodes with %d workers: %g, not %g", c.nodes, c.workers, got, c.want)
		}
	}
}

// Processors also move what isolated groups bring for their next view, and nodes agree on each
// epoch.
func TestWhatComesBesideStepsTakesProcessors(t *testing.T) {
	b := Brought{Period: 2}
	b.Next.All.Bytes[peer.Shard], b.Next.All.Requests[peer.Shard] = 400, 40
	if c := b.sent(10); c.Bytes[peer.Shard] != 20 || c.Requests[peer.Shard] != 2 {
		t.Errorf("a step of ten has %v", c)
	}
	if c := (&Brought{First: b.First, Next: b.Next}).sent(10); c != (peer.Counts{}) {
		t.Errorf("of a view that never comes a step has %v", c)
	}
	rates := Rates{RoundTrip: 1, Question: 4, Cores: 2}
	if one, three := rates.agree(1), rates.agree(3); one != 0 || three != 5 {
		t.Errorf("to agree takes %g s on one node, and %g s on three", one, three)
	}
}
