package baseline

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/stats"
)

// A Comparison is medians over rounds, of edges a second.
type Comparison struct {
	Ours, Theirs float64
	Ratio        float64 // of the two in one round
	Edges        uint64  // of a round
	// Disturbed is how many of the rounds count although the machine was busy
	// with something else: too few others could be had.
	Disturbed int
}

// undisturbed is the share of the time in which all threads must have run for a
// round to count.
const undisturbed = 0.93

// tries is how often a round is repeated that does not count.
const tries = 12

// Compare has both sides do the work in turn, for some rounds. That they draw
// different edges is an error.
func Compare(ctx context.Context, w *Program, work Work, rounds int) (Comparison, error) {
	var ours, theirs, ratios []float64
	var c Comparison
	left := rounds * (tries - 1)
	for len(ours) < rounds {
		a, err := Ours(w.t, work)
		if err != nil {
			return c, err
		}
		b, err := w.Run(ctx, work)
		if err != nil {
			return c, err
		}
		if err := agree(a, b); err != nil {
			return c, err
		}
		if !a.undisturbed(work.Threads) || !b.undisturbed(work.Threads) {
			if left > 0 {
				left--
				continue
			}
			c.Disturbed++
		}
		ours, theirs, ratios = append(ours, a.Rate()), append(theirs, b.Rate()), append(ratios, a.Rate()/b.Rate())
		c.Edges = a.Edges
	}
	c.Ours, c.Theirs, c.Ratio = stats.Median(ours), stats.Median(theirs), stats.Median(ratios)
	return c, nil
}

func (r Result) undisturbed(threads int) bool {
	return r.CPU == 0 || r.CPU >= undisturbed*float64(threads)*r.Seconds
}

func agree(a, b Result) error {
	if a.Edges != b.Edges || a.Checksum != b.Checksum {
		return fmt.Errorf("the sampler drew %d edges with checksum %#x, and its baseline %d with %#x: one of them is wrong", a.Edges, a.Checksum, b.Edges, b.Checksum)
	}
	return nil
}
