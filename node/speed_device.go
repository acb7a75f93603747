package node

import (
	"context"
	"errors"
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/node/jobs"
)

const (
	speedEdges  = 1 << 18 // of what devices are compared by: 64 MiB of rows
	speedDegree = 8
)

// processor opens all of this machine's cores.
func processor(threads int) (tensor.Device, error) { return cpu.New(threads), nil }

// timesFaster says how many times as fast as another a device gathers rows at random and
// adds them up. So a node with a GPU counts as that many like itself without one.
func timesFaster(ctx context.Context, open, than jobs.Device) (float64, error) {
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

// gathering is how many rows a device adds up in a second, the best of some rounds.
func gathering(ctx context.Context, d tensor.Device) (rate float64, err error) {
	arena, err := d.NewArena(0)
	if err != nil {
		return 0, err
	}
	defer arena.Close()
	targets := speedEdges / speedDegree
	g := &tensor.CSR{Rows: targets, Cols: speedRows, Indptr: make([]int64, targets+1), Indices: make([]int32, speedEdges), Stamp: tensor.NewStamp()}
	row := uint32(1)
	for e := range g.Indices {
		row = row*1664525 + 1013904223
		g.Indices[e] = int32(row >> (32 - 15))
	}
	for r := range g.Indptr {
		g.Indptr[r] = int64(r * speedDegree)
	}
	x, y := arena.Alloc(d.Type(), speedRows, speedWidth), arena.Alloc(d.Type(), targets, speedWidth)
	d.Zero(x)
	for range 1 + speedRounds { // the first brings the graph, too
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		begin := time.Now()
		d.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil)
		if f, foreign := d.(tensor.Foreign); foreign {
			err = errors.Join(err, f.Err())
		}
		rate = max(rate, speedEdges/time.Since(begin).Seconds())
	}
	return rate, err
}
