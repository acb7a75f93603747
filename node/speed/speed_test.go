package speed

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

// ofCores is the speed of a node with so many cores.
func ofCores(n int) uint64 { return uint64(plan.OrdinarySpeed * n / ordinaryCores) }

// paced takes this long for each round of what is measured.
type paced struct {
	tensor.Device
	takes func() time.Duration
}

func (d *paced) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	time.Sleep(d.takes())
}

func pacedAt(takes func() time.Duration) Open {
	return func(int) (tensor.Device, error) { return &paced{cpu.New(1), takes}, nil }
}

// Without a GPU nothing is measured: nodes with as many cores have the same speed, to the
// last digit, and those with twice as many twice that.
func TestCoresAreCounted(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for _, n := range []int{1, 2, 16, 64} {
		runtime.GOMAXPROCS(n)
		if speed, err := Of(t.Context(), nil); err != nil || speed != ofCores(n) {
			t.Errorf("%d cores have the speed %d, want %d (%v)", n, speed, ofCores(n), err)
		}
	}
}

// A GPU counts as so many cores as add up as many rows.
func TestSpeedIsTheDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cores, want := range map[int]uint64{100: 12500, 8: 1000, 1: 125} {
			takes := time.Duration(float64(edges*time.Second) / coreRate / float64(cores))
			speed, err := Of(t.Context(), pacedAt(func() time.Duration { return takes }))
			if err != nil || speed < want-1 || speed > want+1 {
				t.Errorf("a device as fast as %d cores has the speed %d, want %d (%v)", cores, speed, want, err)
			}
		}
	})
}

// What is measured of equal GPUs on busy machines is of one class, though most rounds take
// up to ten times as long as they would alone.
func TestBusyMachinesAreEquallyFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone := 30 * time.Microsecond
		var speeds []uint64
		for seed := range uint64(20) {
			random := keyed.New(seed, keyed.Order).Draws()
			speed, err := Of(t.Context(), pacedAt(func() time.Duration {
				return alone + time.Duration(random.Float64()*9*float64(alone))
			}))
			if err != nil {
				t.Fatal(err)
			}
			speeds = append(speeds, speed)
		}
		if slow, fast := slices.Min(speeds), slices.Max(speeds); fast >= slow+slow/2 {
			t.Errorf("equal devices have speeds from %d to %d, which are of several classes", slow, fast)
		}
	})
}

// A device that fails leaves the node the speed of its cores.
func TestSpeedWithoutTheDevice(t *testing.T) {
	broken := errors.New("it fell off the bus")
	for name, open := range map[string]Open{
		"not opened": func(int) (tensor.Device, error) { return nil, broken },
		"fails": func(int) (tensor.Device, error) {
			d := foreign.New(1)
			d.FailAt(3, broken)
			return d, nil
		},
	} {
		if speed, err := Of(t.Context(), open); !errors.Is(err, broken) || speed != ofCores(runtime.GOMAXPROCS(0)) {
			t.Errorf("%s: a speed of %d, %v", name, speed, err)
		}
	}
}

// A node that is stopped opens no device.
func TestNothingIsMeasuredOnceItIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Of(ctx, func(int) (tensor.Device, error) {
		t.Error("a device was opened")
		return nil, errors.New("it should not be")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A node that starts again moves no shard by noise.
func TestSteady(t *testing.T) {
	for _, c := range []struct{ planned, now, want uint64 }{
		{0, 250, 250}, {1000, 1400, 1000}, {1000, 700, 1000}, {1000, 2000, 2000}, {1000, 500, 500},
	} {
		if got := Steady(c.planned, c.now); got != c.want {
			t.Errorf("planned at %d and now %d it is %d, want %d", c.planned, c.now, got, c.want)
		}
	}
}
