package auto

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
)

// Measured is the time of an epoch as all nodes agree on it, in seconds: its slowest
// node's time and, of phases, the mean of all nodes.
type Measured struct {
	Epoch                          int
	Next                           int // the epoch with which a change begins; 0: the one after
	Seconds, Sample, Compute, Wait float64
}

// enough is what a change must bring: an epoch in so much of the time. After a change
// there is no other for restEpochs epochs.
const (
	enough     = 0.8
	restEpochs = 3
)

// Note records a whole epoch, and reports whether the next one is shared in another
// way. fits reports whether this node has room for that. Where a node has none, nothing
// changes, and the candidate is not considered again. All nodes call Note at the same
// point of their run. A job never changes to p3 or from it: that would have to fetch
// all columns first.
func (c *Choice) Note(ctx context.Context, m Measured, fits func(Candidate) (bool, error)) (changed bool, err error) {
	to, why := c.better(m)
	if to < 0 {
		return false, nil
	}
	all, err := c.agree(ctx, m, to, fits)
	if err != nil {
		return false, fmt.Errorf("change to the strategy %s: %w", c.candidates[to].Name, err)
	}
	if !all {
		c.cramped[to] = true
		return false, nil
	}
	c.at, c.why, c.rest = to, why, restEpochs
	return true, nil
}

// agree returns an error unless all nodes have room for a candidate.
func (c *Choice) agree(ctx context.Context, m Measured, to int, fits func(Candidate) (bool, error)) (bool, error) {
	here, err := fits(c.candidates[to])
	if err != nil {
		return false, err
	}
	message := []byte{0}
	if here {
		message[0] = 1
	}
	t := exchange.Tag{Epoch: uint32(m.Epoch), Step: uint32(c.facts.steps), Lane: exchange.LaneMessages, Index: roomAt}
	messages, err := c.job.Exchange.Gather(ctx, t, message, c.job.Tally)
	if err != nil {
		return false, err
	}
	all := true
	for node, said := range messages {
		if len(said) != 1 || said[0] > 1 {
			return false, fmt.Errorf("node %s sent a malformed report of whether it has room (%d bytes)", c.job.Work.Nodes[node], len(said))
		}
		all = all && said[0] == 1
	}
	return all, nil
}

// better returns the index of the candidate that is enough faster than the measured
// time, and why; -1: there is none, or it is too early.
func (c *Choice) better(m Measured) (to int, why string) {
	used := &c.tried[c.at]
	if used.name == p3.Name || !(m.Seconds > 0) || math.IsInf(m.Seconds, 1) {
		return -1, ""
	}
	c.rates.correct(&c.facts, used, &m, m.Epoch == c.job.Epoch)
	costs := c.costs()
	c.found[c.at] = m.Seconds / costs[c.at].seconds
	if c.rest--; c.rest > 0 {
		return -1, ""
	}
	var places []int // of those that are fast enough
	var fast []cost
	for i := range costs {
		e := costs[i]
		e.seconds = c.expect(costs, i, m.Seconds)
		if i != c.at && !c.cramped[i] && e.name != p3.Name && e.seconds <= enough*m.Seconds {
			places, fast = append(places, i), append(fast, e)
		}
	}
	if len(places) == 0 {
		return -1, ""
	}
	best := choose(fast)
	from, e := &costs[c.at], &fast[best]
	return places[best], fmt.Sprintf("%s since epoch %d: an epoch took %s with %s, and about %s is expected; it sends about %s %s, where %s sends %s, and the network gives %s/s",
		e.name, cmp.Or(m.Next, m.Epoch+1), duration(m.Seconds), from.name, duration(e.seconds), e.load(), c.facts.each(), from.name, from.loadBeside(e), amount(c.rates.Bandwidth))
}

// expect predicts how long an epoch takes by a candidate. One that was used before
// takes as much longer than predicted as it did then. For another, the error of the
// strategy in use is known: what that takes beyond its prediction is unexplained and
// expected to stay; where it takes less, all do.
func (c *Choice) expect(costs []cost, i int, measured float64) float64 {
	if c.found[i] > 0 {
		return costs[i].seconds * c.found[i]
	}
	if beyond := measured - costs[c.at].seconds; beyond > 0 {
		return costs[i].seconds + beyond
	}
	return costs[i].seconds * c.found[c.at]
}

// correct corrects rates by the time of an epoch. In the first, all rows come.
func (r *Rates) correct(f *facts, used *tried, m *Measured, first bool) {
	rows, hidden := f.brought(used, first)
	if rows > 0 && m.Compute > 0 {
		r.Compute = m.Compute / rows
	}
	if rows > 0 && m.Sample > 0 {
		r.Sample = m.Sample / rows
	}
	// Prefetching takes as long as computing and waiting for it together: fetching rows
	// took the rest. If nothing waits, it took no longer than that.
	left := m.Compute + m.Wait - rows*r.Sample/r.Hands - float64(f.steps)*r.RoundTrip
	if hidden <= 0 || left <= 0 {
		return
	}
	const noticeable = 0.02
	seen := min(max(hidden/left, 1), fastest)
	if m.Wait > noticeable*m.Seconds {
		r.Bandwidth = math.Sqrt(r.Bandwidth * seen) // half the correction: time is lost to other things, too
	} else {
		r.Bandwidth = max(r.Bandwidth, seen)
	}
}

// brought returns how many rows a node computes in an epoch, and how many bytes come to
// it ahead of each step, on average over nodes.
func (f *facts) brought(t *tried, first bool) (rows, hidden float64) {
	for i := range t.loads {
		l := &t.loads[i]
		rows += float64(l.Rows)
		if f.once {
			continue
		}
		each, _ := l.features(f, 1)
		if first {
			each = float64(l.Remote) * f.row
		}
		hidden += each + float64(l.Topology)
	}
	scale := float64(f.steps) / float64(t.looks) / float64(f.nodes)
	return rows * scale, hidden * scale
}
