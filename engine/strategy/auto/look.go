package auto

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// mostLooks is how many steps of an epoch are counted.
const mostLooks = 3

// The messages of a choice, among those of exchange.LaneMessages. They come after those
// by which nodes meet, which have the first steps before the first epoch.
const (
	firstStep  = 8
	censusAt   = 1 << 16
	ratesAt    = 1<<16 + 1
	parcelAt   = 1<<16 + 2
	envelopeAt = 1<<16 + 3
	askedAt    = 1<<16 + 5
)

func tag(step, index uint32) exchange.Tag {
	return exchange.Tag{Step: firstStep + step, Lane: exchange.LaneMessages, Index: index}
}

// look counts the work of this node by each candidate. It returns the counts of all
// nodes, with this node's time of counting a row, which is about that of sampling it.
func (j *Job) look(ctx context.Context, candidates []Candidate) (all []census, seconds float64, err error) {
	mine := census{Steps: uint64(min(mostLooks, j.Steps)), Row: j.Rows.RowBytes(), Room: j.Room, Loads: make([]Load, len(candidates))}
	var e eye
	for i, c := range candidates {
		e.load, e.asking = &mine.Loads[i], c.asking
		e.load.Keeps, e.load.Far = uint64(c.keeps), uint64(c.far)
		for step := range int(mine.Steps) {
			e.groups = c.Dealer.Deal(e.groups, j.Batch(step), j.Work.Self)
			if err := j.see(ctx, &e, step); err != nil {
				return nil, 0, fmt.Errorf("look at step %d by %s: %w", step+1, c.Name, err)
			}
		}
	}
	if e.rows > 0 {
		seconds = e.took.Seconds() / e.rows
	}
	message, err := mine.encode()
	if err != nil {
		return nil, 0, fmt.Errorf("encode what was counted: %w", err)
	}
	messages, err := j.Exchange.Gather(ctx, tag(0, censusAt), message, j.Tally)
	if err != nil {
		return nil, 0, err
	}
	for node, m := range messages {
		c, err := readCensus(m, len(candidates))
		if err == nil && c.Steps != mine.Steps {
			err = fmt.Errorf("has looked at %d steps, and this one at %d", c.Steps, mine.Steps)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("node %s %w", j.Work.Nodes[node], err)
		}
		all = append(all, c)
	}
	return all, seconds, nil
}

// An eye counts the work of steps, in memory that is reused.
type eye struct {
	load   *Load
	asking gather.Options
	groups []deal.Group
	blocks []sample.Size
	sets   [][]uint32
	placed gather.Rows

	took time.Duration // for counting
	rows float64       // counted
}

// see counts a step as it was dealt.
func (j *Job) see(ctx context.Context, e *eye, step int) error {
	l := e.load
	before, start, rows := j.topology(), time.Now(), l.Rows
	e.sets = slices.Grow(e.sets, max(0, len(e.groups)-len(e.sets)))[:len(e.groups)]
	for i := range e.groups {
		g := &e.groups[i]
		if i == 0 || g.Slot != e.groups[i-1].Slot {
			l.Slots++
		}
		l.Roots += uint64(len(g.Roots))
		e.sets[i] = e.sets[i][:0]
		if len(g.Roots) == 0 {
			continue
		}
		var err error
		if e.blocks, err = j.Counter.Count(ctx, e.blocks, uint64(j.Epoch), uint64(step), g.Roots); err != nil {
			return err
		}
		l.add(g.Roots, e.blocks)
		e.sets[i] = append(e.sets[i], j.Counter.Vertices()...)
	}
	e.took += time.Since(start)
	e.rows += float64(l.Rows - rows)
	l.Topology += j.topology() - before
	if err := j.Rows.Count(&e.placed, e.sets, e.asking); err != nil {
		return err
	}
	l.Local += uint64(e.placed.Local)
	l.Remote += uint64(e.placed.Remote)
	return nil
}

// add adds the blocks of some roots.
func (l *Load) add(roots []uint32, blocks []sample.Size) {
	if len(blocks) == 0 {
		n := uint64(len(roots))
		l.Rows, l.Inputs, l.First = l.Rows+n, l.Inputs+n, l.First+n
		return
	}
	for _, z := range blocks {
		l.Rows += uint64(z.Sources)
	}
	l.Inputs += uint64(blocks[0].Sources)
	l.First += uint64(blocks[0].Targets)
	l.Edges += uint64(blocks[0].Entries)
}

func (j *Job) topology() uint64 {
	if j.Tally == nil {
		return 0
	}
	return j.Tally.Read().Bytes[peer.Topology]
}
