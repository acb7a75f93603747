package forecast

import (
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
