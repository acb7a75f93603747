// Package speed says how fast a node is, so that the plan gives faster nodes more
// shards. The cores of a node are counted, not timed: equal nodes are then equally fast,
// however busy they are when they start. Only a GPU is timed, by what training does most:
// gathering rows at random and adding them up.
package speed

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Open opens a device for its caller alone; nil stands for the processor.
type Open func(threads int) (tensor.Device, error)

const (
	ordinaryCores = 8   // of a node of plan.OrdinarySpeed
	coreRate      = 1e8 // rows a second that a core of an ordinary server adds up

	rows     = 1 << 15
	width    = 64 // floats: a row is 256 bytes, all of them 8 MiB
	edges    = 1 << 18
	degree   = 8
	fewest   = 6                      // rounds
	duration = 100 * time.Millisecond // more rounds until then, for a pause between what other programs do
)

// Of returns this node's speed, where a node of eight cores has plan.OrdinarySpeed. A GPU
// counts as so many cores as add up as many rows. If it fails, Of returns the speed of the
// processor with the error.
func Of(ctx context.Context, device Open) (speed uint64, err error) {
	// The runtime has looked at the processors that the process may use and at the quota
	// of its control group. Training uses as many threads.
	cores := float64(runtime.GOMAXPROCS(0))
	if device != nil {
		var rate float64
		if rate, err = gathering(ctx, device); err == nil {
			cores = rate / coreRate
		}
		debug.FreeOSMemory() // the tables are most of what a fresh node holds
	}
	return max(1, uint64(plan.OrdinarySpeed*cores/ordinaryCores+0.5)), err
}

// Steady returns the speed that the plan is to record for a node that started again: the
// planned one, unless the new one is far off.
func Steady(planned, now uint64) uint64 {
	if planned == 0 || now > planned+planned/2 || planned > now+now/2 {
		return now
	}
	return planned
}

// gathering returns how many rows a second a device adds up. The best of many rounds
// counts, since other programs disturb the others.
func gathering(ctx context.Context, open Open) (rate float64, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	d, err := open(0)
	if err != nil {
		return 0, err
	}
	defer d.Close()
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
	start := time.Now()
	for round := 0; round <= fewest || time.Since(start) < duration; round++ {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		begin := time.Now()
		d.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil)
		if f, foreign := d.(tensor.Foreign); foreign {
			err = errors.Join(err, f.Err())
		}
		if err != nil {
			return 0, err
		}
		if round == 0 { // which also copies the graph to the device
			start = time.Now()
			continue
		}
		rate = max(rate, edges/time.Since(begin).Seconds())
	}
	return rate, nil
}
