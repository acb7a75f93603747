package node

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/jobs"
)

const (
	// speedStep is by how much two measurements must differ to give two speeds.
	// They are noisy, and noise must move no shard.
	speedStep = 1.25

	speedRows    = 1 << 15
	speedWidth   = 64 // floats: a row is 256 bytes, all of them 8 MiB
	speedFor     = 30 * time.Millisecond
	speedRounds  = 6
	ordinaryRate = 8e6 // rows a second
)

// measure finds out the node's speed, unless it was told. It is called before anybody
// asks for that.
func (n *Node) measure(ctx context.Context) {
	if n.opts.Speed > 0 {
		return
	}
	var err error
	if n.opts.Speed, err = speedWith(ctx, n.opts.computes()); err != nil && ctx.Err() == nil {
		n.log.Warn("the device's speed could not be measured, and counts as that of the processor", "device", n.opts.Device, "err", err)
	}
}

// speedWith says how fast this node gathers rows at random and adds them up, which is
// most of what training does, beside others; a device counts by how it compares with the
// node's cores. With an error it is the speed without it.
func speedWith(ctx context.Context, device jobs.Device) (speed uint64, err error) {
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

// threadRate is how many rows a second one thread adds up, within 30 ms. Of some rounds
// the best counts, since others are at work here, too.
func threadRate() float64 {
	table := make([]float32, speedRows*speedWidth)
	for i := range table {
		table[i] = float32(i % 7)
	}
	var sum [speedWidth]float32
	best, row := 0.0, uint32(1)
	for range speedRounds {
		begin, rows := time.Now(), 0
		for time.Since(begin) < speedFor/speedRounds {
			for range 1024 {
				row = row*1664525 + 1013904223
				at := int(row>>(32-15)) * speedWidth
				for i, v := range table[at : at+speedWidth] {
					sum[i] += 0.5 * v
				}
			}
			rows += 1024
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
	steps := math.Round(math.Log(speed/plan.OrdinarySpeed) / math.Log(speedStep))
	return uint64(math.Max(1, math.Round(plan.OrdinarySpeed*math.Pow(speedStep, steps))))
}

// steadySpeed is what the plan is to say of a node whose speed was measured anew:
// what it said before, unless that is far off.
func steadySpeed(planned, measured uint64) uint64 {
	if planned == 0 || measured > planned+planned/2 || planned > measured+measured/2 {
		return measured
	}
	return planned
}
