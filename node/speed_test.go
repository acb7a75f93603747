package node

import (
	"context"
	"errors"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

// repeating does all that is measured so many times.
type repeating struct {
	*foreign.Device
	times int
}

func (d *repeating) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	for range d.times {
		d.Device.Aggregate(y, g, values, x, how, add, e)
	}
}

// A node's speed is that of its device, by how it compares with the node's own cores.
func TestSpeedIsTheDevices(t *testing.T) {
	of := func(times int) float64 {
		faster, err := timesFaster(t.Context(), func(int) (tensor.Device, error) { return &repeating{foreign.New(0), times}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return faster
	}
	once, often := of(1), of(15)
	if once < 0.1 || once > 10 || often > once/3 {
		t.Errorf("a device like the cores is %v times as fast as they, and one that does all 15 times %v", once, often)
	}
}

// A device that can't be measured leaves the node its own speed.
func TestSpeedWithoutTheDevice(t *testing.T) {
	broken := errors.New("it fell off the bus")
	if _, err := timesFaster(t.Context(), func(int) (tensor.Device, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	fails := func(int) (tensor.Device, error) {
		d := foreign.New(1)
		d.FailAt(3, broken)
		return d, nil
	}
	if _, err := timesFaster(t.Context(), fails); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	speed, err := speedWith(t.Context(), fails)
	if !errors.Is(err, broken) || speed < plan.OrdinarySpeed/1000 {
		t.Errorf("a speed of %d, %v", speed, err)
	}
}

// Making a node opens no device, and a node that is stopped measures none.
func TestSpeedIsMeasuredByRun(t *testing.T) {
	n, err := New(Options{DataDir: t.TempDir(), Name: "n1", Listen: "127.0.0.1:0", Device: "cpu"})
	if err != nil || n.opts.Speed != 0 {
		t.Fatalf("a speed of %d before it runs: %v", n.opts.Speed, err)
	}
	if n.measure(t.Context()); n.opts.Speed == 0 {
		t.Error("nothing was measured")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = timesFaster(ctx, func(int) (tensor.Device, error) {
		t.Error("a device was opened")
		return nil, errors.New("it should not be")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
