//go:build cuda && emulator

package device

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A device that ran out of memory in the middle of a step gives back what it has, as
// another of the same process may be using the GPU.
func TestWhatFailedGivesBack(t *testing.T) {
	other := opened(t, Options{})
	var left []uint64
	// The first time a driver may take some memory that it keeps for the next.
	for range 2 {
		d, err := Open(0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := d.NewArena(64 << 20)
		if err != nil {
			t.Fatal(err)
		}
		_, total := other.Free()
		d.Zero(a.Alloc(tensor.F32, int(total)/1024, 1024))
		if err := d.Err(); err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("got %v", err)
		}
		a.Close()
		d.Close()
		d.Close()
		free, _ := other.Free()
		left = append(left, free)
	}
	if left[0] != left[1] {
		t.Errorf("%d bytes were free, and now %d", left[0], left[1])
	}
}

// A lane that can't be had in the end takes nothing. The fault is the emulated driver's,
// which reads of it when it is first used.
func TestLanesThatFailGiveBack(t *testing.T) {
	const fault = "HOPMESH_EMU_FAULT"
	if os.Getenv(fault) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLanesThatFailGiveBack$")
		c.Env = append(os.Environ(), fault+"=cuMemAlloc_v2:4:2") // the second of the lane's
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	d := opened(t, Options{})
	emulated := strings.Contains(d.Name(), "emulated")
	if !emulated { // a driver may take some memory for the first that it keeps for the next
		l, err := d.Lane()
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	before, _ := d.Free()
	l, err := d.Lane()
	if err == nil {
		l.Close()
	}
	if emulated && (err == nil || !strings.Contains(err.Error(), "a lane: ")) {
		t.Errorf("got %v", err)
	}
	if after, _ := d.Free(); after != before {
		t.Errorf("%d bytes were free, and now %d", before, after)
	}
}
