package speed

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

// paced takes this long for what is measured.
type paced struct {
	tensor.Device
	takes time.Duration
}

func (d *paced) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	time.Sleep(d.takes)
	d.Device.Aggregate(y, g, values, x, how, add, e)
}

// A node's speed is that of its device, by how it compares with the node's own cores.
func TestSpeedIsTheDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(takes time.Duration) func(int) (tensor.Device, error) {
			return func(int) (tensor.Device, error) { return &paced{cpu.New(1), takes}, nil }
		}
		for takes, want := range map[time.Duration]float64{time.Millisecond: 15, 15 * time.Millisecond: 1, 150 * time.Millisecond: 0.1} {
			faster, err := timesFaster(t.Context(), at(takes), at(15*time.Millisecond))
			if err != nil || math.Abs(faster-want) > 1e-9*want {
				t.Errorf("a device that takes %s where the cores take 15 ms is %v times as fast, not %v (%v)", takes, faster, want, err)
			}
		}
	})
}

// A device that can't be measured leaves the node its own speed.
func TestSpeedWithoutTheDevice(t *testing.T) {
	broken := errors.New("it fell off the bus")
	if _, err := timesFaster(t.Context(), func(int) (tensor.Device, error) { return nil, broken }, processor); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	fails := func(int) (tensor.Device, error) {
		d := foreign.New(1)
		d.FailAt(3, broken)
		return d, nil
	}
	if _, err := timesFaster(t.Context(), fails, processor); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	speed, err := Measure(t.Context(), fails)
	if !errors.Is(err, broken) || speed < plan.OrdinarySpeed/1000 {
		t.Errorf("a speed of %d, %v", speed, err)
	}
}

// Making a node opens no device, and a node that is stopped measures none.
func TestNothingIsMeasuredOnceItIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := timesFaster(ctx, func(int) (tensor.Device, error) {
		t.Error("a device was opened")
		return nil, errors.New("it should not be")
	}, processor)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
