package forecast

import (
	"runtime"
	"strings"
	"testing"
)

// A step is timed only where there is room for it. What was taken for one serves the next.
func TestAStepThatDoesNotFitIsNotTimed(t *testing.T) {
	left := uint64(100 << 20)
	c := &clock{left: func() uint64 { return left }}
	if err := c.fits(&sizes{slot: 40 << 20, pass: 50 << 20, beside: 5 << 20}); err != nil {
		t.Fatal(err)
	}
	left = 5 << 20
	if err := c.fits(&sizes{slot: 60 << 20, pass: 40 << 20}); err != nil {
		t.Errorf("what was taken before is not used again: %v", err)
	}
	if err := c.fits(&sizes{slot: 80 << 20, pass: 40 << 20}); err == nil || !strings.Contains(err.Error(), "which needs 120.0 MiB of memory, and has 105.0 MiB") {
		t.Error(err)
	}
}

// Processors are as many as threads at most, and with fewer threads wait for each other.
func TestProcessors(t *testing.T) {
	threads := float64(runtime.GOMAXPROCS(0))
	if n := Processors(); n <= 0 || n > 1.01*threads {
		t.Errorf("%g of %g", n, threads)
	}
	if r := (Rates{Cores: threads / 4}); r.Slower() != 4 || (Rates{}).Slower() != 1 || (Rates{Cores: 2 * threads}).Slower() != 1 {
		t.Error(r.Slower())
	}
}

// Where a process gets fewer processors than it has threads, what is hidden is not.
func TestBusyProcessorsDoNoMoreThanTheyCan(t *testing.T) {
	rates := Rates{Bandwidth: 100, Encrypt: 50}
	if b := rates.busy(200); b != 4 {
		t.Error(b)
	}
	if b := (Rates{Bandwidth: 100}).busy(200); b != 0 {
		t.Error(b)
	}
}
