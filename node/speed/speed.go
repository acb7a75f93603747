// Package speed measures how fast a node is, so that the plan gives faster nodes
// more shards. It measures what training does most: gather rows at random and add
// them up.
package speed

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Open opens a device for its caller alone; nil stands for the processor.
type Open func(threads int) (tensor.Device, error)

const (
	// step is by how much two measurements must differ to give two speeds.
	// Measurements are noisy, and noise must move no shard.
	step = 1.25

	rows         = 1 << 15
	width        = 64 // floats: a row is 256 bytes, all of them 8 MiB
	duration     = 30 * time.Millisecond
	rounds       = 6
	pieces       = 150 // of the duration, each shorter than a busy machine lets a thread run
	ordinaryRate = 8e6 // rows a second

	edges  = 1 << 18 // the graph by which devices are compared: 64 MiB of rows
	degree = 8
)

// Measure returns this node's speed, where an ordinary node has plan.OrdinarySpeed. A
// device counts by how it compares with the node's cores. If the device fails, Measure
// returns the speed of the processor with the error.
func Measure(ctx context.Context, device Open) (speed uint64, err error) {
	rate := threadRate()
	if device != nil {
		var faster float64
		if faster, err = timesFaster(ctx, device, processor); err == nil {
			rate *= faster
		}
	}
	debug.FreeOSMemory() // the tables are most of what a fresh node holds
	return quantised(plan.OrdinarySpeed * rate / ordinaryRate), err
}

// threadRate returns how many rows a second one thread adds up, measured within 30 ms. The
// best of many pieces counts, since other programs disturb the others.
func threadRate() float64 {
	table := make([]float32, rows*width)
	for i := range table {
		table[i] = float32(i % 7)
	}
	var sum [width]float32
	best, row := 0.0, uint32(1)
	for range pieces {
		begin, rows := time.Now(), 0
		for time.Since(begin) < duration/pieces {
			for range 256 {
				row = row*1664525 + 1013904223
				at := int(row>>(32-15)) * width
				for i, v := range table[at : at+width] {
					sum[i] += 0.5 * v
				}
			}
			rows += 256
		}
		best = max(best, float64(rows)/time.Since(begin).Seconds())
	}
	if math.IsNaN(float64(sum[0])) {
		return 0 // never; but it makes the work be done
	}
	return best
}

// quantised rounds to the nearest step.
func quantised(speed float64) uint64 {
	if speed < 1 {
		return 1
	}
	steps := math.Round(math.Log(speed/plan.OrdinarySpeed) / math.Log(step))
	return uint64(math.Max(1, math.Round(plan.OrdinarySpeed*math.Pow(step, steps))))
}

// Steady returns the speed that the plan is to record for a node that was measured
// again: the planned one, unless the new one is far off.
func Steady(planned, measured uint64) uint64 {
	if planned == 0 || measured > planned+planned/2 || planned > measured+measured/2 {
		return measured
	}
	return planned
}

// processor opens all of this machine's cores.
func processor(threads int) (tensor.Device, error) { return cpu.New(threads), nil }

// timesFaster returns how many times as fast as the other one a device is. A node with a
// GPU counts as that many nodes without one.
func timesFaster(ctx context.Context, open, than Open) (float64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	device, err := open(0)
	if err != nil {
		return 0, err
	}
	defer device.Close()
	other, err := than(0)
	if err != nil {
		return 0, err
	}
	defer other.Close()
	rate, err := gathering(ctx, device)
	if err != nil {
		return 0, err
	}
	others, err := gathering(ctx, other)
	if err != nil {
		return 0, err
	}
	return rate / others, nil
}

// gathering returns how many rows a second a device adds up, the best of some rounds.
func gathering(ctx context.Context, d tensor.Device) (rate float64, err error) {
	arena, err := d.NewArena(0)
	if err != nil {
		return 0, err
	}
	defer arena.Close()
	targets := edges / degree
	g := &tensor.CSR{Rows: targets, Cols: rows, Indptr: make([]int64, targets+1), Indices: make([]int32, edges), Stamp: tensor.NewStamp()}
	row := uint32(1)
	for e := range g.Indices {
		row = row*1664525 + 1013904223
		g.Indices[e] = int32(row >> (32 - 15))
	}
	for r := range g.Indptr {
		g.Indptr[r] = int64(r * degree)
	}
	x, y := arena.Alloc(d.Type(), rows, width), arena.Alloc(d.Type(), targets, width)
	d.Zero(x)
	for range 1 + rounds { // the first also copies the graph to the device
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		begin := time.Now()
		d.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil)
		if f, foreign := d.(tensor.Foreign); foreign {
			err = errors.Join(err, f.Err())
		}
		rate = max(rate, edges/time.Since(begin).Seconds())
	}
	return rate, err
}
