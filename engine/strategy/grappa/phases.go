package grappa

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
)

// A node computes its groups in phases, one after another. Of a step, the first phase is
// prepared ahead, and each other one while the one before it is computed. Gradients are
// added up in the same order as without phases, so weights are the same.

// phases returns the groups of this node, phase by phase.
func (n *Method) phases() (all [][]int) {
	runs := min(max(1, n.runs), max(1, len(n.mine)))
	for i := range runs {
		if groups := n.mine[i*len(n.mine)/runs : (i+1)*len(n.mine)/runs]; len(groups) > 0 {
			all = append(all, groups)
		}
	}
	return all
}

// phaseOf returns the phase of a group of this node.
func (n *Method) phaseOf(group int) int {
	for p, groups := range n.phases() {
		if group <= groups[len(groups)-1] {
			return p
		}
	}
	return 0
}

// phasing is what the phases of steps share.
type phasing struct {
	runs    int           // phases of a step
	spare   *bench        // of every second phase
	last    atomic.Uint64 // number of a phased step
	filling *bench        // prepared now, beside the run; nil: none
}

// A bench holds what is prepared of a phase.
type bench struct {
	slot.Slot

	of   uint64 // number of the phased step; 0: nothing is there
	part int    // of it
	done chan struct{}
	err  error
}

// phased is a step in phases, and is kept with its slot.
type phased struct {
	number uint64 // of a run's preparations; from 1
	own    *bench
	parts  []part
	epoch  int
	first  int // part whose effort has not been counted
}

// A part is the groups of a slot from first to before end, which are of one phase.
type part struct{ first, end int }

// partsOf sets the parts of groups of which each is of a phase.
func partsOf(parts []part, groups int, phase func(i int) int) []part {
	parts = parts[:0]
	for i := range groups {
		if i == 0 || phase(i) != phase(i-1) {
			parts = append(parts, part{first: i})
		}
		parts[len(parts)-1].end = i + 1
	}
	return parts
}

// Prepare implements Method.
func (n *Method) Prepare(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	if n.runs <= 1 {
		return n.Batched.Prepare(ctx, h, s, epoch)
	}
	s.Forget()
	n.Deal(s, epoch)
	p, _ := s.Own.(*phased)
	if p == nil {
		p = &phased{own: &bench{}}
		s.Own = p
	}
	for i := range s.Groups {
		s.Groups[i] = slot.Group{Group: s.Groups[i].Group}
	}
	p.parts = partsOf(p.parts, len(s.Groups), func(i int) int { return n.phaseOf(n.Of(s.Groups[i].Roots).Group) })
	p.epoch, p.first = epoch, 0
	p.own.Rows, p.own.of, p.number = s.Rows, 0, n.last.Add(1)
	if len(p.parts) == 0 {
		return nil
	}
	return n.fill(ctx, h, s, p.own, 0)
}

// fill prepares a part of a step.
func (n *Method) fill(ctx context.Context, h *slot.Worker, s *slot.Slot, b *bench, at int) error {
	p, _ := s.Own.(*phased)
	groups := s.Groups[p.parts[at].first:p.parts[at].end]
	b.of, b.Step, b.Roots = 0, s.Step, s.Roots
	b.Forget()
	n.BeginPairs(&b.Pairs, s.Roots, p.epoch)
	b.Groups = slices.Grow(b.Groups[:0], len(groups))[:len(groups)]
	for i := range groups {
		b.Groups[i].Group = groups[i].Group
	}
	if err := n.PrepareDealt(ctx, h, &b.Slot, p.epoch); err != nil {
		return err
	}
	b.of, b.part = p.number, at
	return nil
}

// bench returns where a part of a step is prepared.
func (n *Method) bench(p *phased, at int) *bench {
	if at%2 == 1 {
		return n.spare
	}
	return p.own
}

// ready has the part prepared that begins with a group, and begins to prepare the next.
func (n *Method) ready(ctx context.Context, s *slot.Slot, group int) (waited time.Duration, err error) {
	p, _ := s.Own.(*phased)
	at := slices.IndexFunc(p.parts, func(of part) bool { return of.first == group })
	if at < 0 {
		return 0, nil
	}
	start := time.Now()
	if at > 0 { // the memory of the part before is used again
		for i := p.parts[at-1].first; i < group; i++ {
			s.Groups[i] = slot.Group{Group: s.Groups[i].Group, Weight: s.Groups[i].Weight}
		}
	}
	b := n.bench(p, at)
	err = n.join()
	if err == nil && (b.of != p.number || b.part != at) {
		err = n.Run.Batches.With(ctx, func(h *slot.Worker) error { return n.fill(ctx, h, s, b, at) })
	}
	if err != nil {
		return time.Since(start), err
	}
	copy(s.Groups[group:], b.Groups)
	if at == p.first { // not by another model of a sweep
		p.first++
		s.Sampling, s.Gathering = s.Sampling+b.Sampling, s.Gathering+b.Gathering
		s.Gathered, s.Remote = s.Gathered+b.Gathered, s.Remote+b.Remote
	}
	if at == 0 {
		s.Drawn = 0
	}
	s.Drawn += int(b.Edges())
	if next := at + 1; next < len(p.parts) {
		if b := n.bench(p, next); b.of != p.number || b.part != next {
			n.ahead(ctx, s, b, next)
		}
	}
	return time.Since(start), nil
}

// ahead begins to prepare a part.
func (n *Method) ahead(ctx context.Context, s *slot.Slot, b *bench, at int) {
	b.done = make(chan struct{})
	n.filling = b
	go func() {
		defer close(b.done)
		b.err = n.Run.Batches.With(ctx, func(h *slot.Worker) error { return n.fill(ctx, h, s, b, at) })
	}()
}

// join waits for the part that is being prepared.
func (n *Method) join() error {
	b := n.filling
	if b == nil {
		return nil
	}
	<-b.done
	n.filling = nil
	return b.err
}

// usePhases computes steps in so many phases from now on.
func (n *Method) usePhases(runs int) error {
	n.runs = max(1, min(runs, len(n.mine)))
	if n.Ready = nil; n.runs == 1 {
		return nil
	}
	n.Ready = n.ready
	if n.spare == nil {
		rows, err := n.Run.Device.NewArena(0)
		if err != nil {
			return err
		}
		n.spare = &bench{Slot: slot.Slot{Rows: rows}}
	}
	return nil
}

// mayPhase reports whether groups can be computed in phases: not on a device with memory of its own,
// and not where rows of vertices are learnt, which are read when the step before has updated them.
func (n *Method) mayPhase() bool { return n.Run.Foreign == nil && n.Run.Recipe.Embeddings == 0 }

// fitPhases takes more phases, where the settings do not say how many, until a step fits in
// memory. Nodes do so apart, since phases do not change what is learned. Models that are averaged
// have one phase.
func (n *Method) fitPhases(ctx context.Context, need *train.Needs) (err error) {
	t := n.Run
	if n.settings.Phases > 0 || n.settings.Average > 1 || !n.mayPhase() {
		return nil
	}
	has := budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has
	for n.runs < len(n.mine) && n.least(need) > has {
		if err := n.usePhases(2 * n.runs); err != nil {
			return err
		}
		if *need, err = t.Forecast(ctx); err != nil {
			return err
		}
	}
	if n.runs > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("a node has %s of memory for this job, so it computes its %s in %d phases: a step takes longer", budget.Format(has), recipe.Count(len(n.mine), "group"), n.runs))
	}
	return nil
}

// least returns what a run needs with no more batches ahead than it must.
func (n *Method) least(need *train.Needs) uint64 {
	depth := uint64(max(1, n.Run.Batches.Depth))
	there := depth
	if n.runs > 1 {
		there++ // the next phase
	}
	return need.OnHost() - need.Of(budget.Slots)/there*(depth-1)
}

// See implements Method: of a step, one phase is in memory.
func (n *Method) See(need *train.Needs, o *slot.Outline) {
	if n.runs <= 1 {
		n.Batched.See(need, o)
		return
	}
	for _, p := range partsOf(nil, len(o.Groups), func(i int) int { return n.phaseOf(n.Of(o.Groups[i].Roots).Group) }) {
		n.Batched.See(need, &slot.Outline{Step: o.Step, Roots: o.Roots, Groups: o.Groups[p.first:p.end], Sets: o.Sets[p.first:p.end]})
	}
}

// Finite implements Method.
func (n *Method) Finite(l *train.Learner, s *slot.Slot) bool {
	if n.runs <= 1 {
		return n.Batched.Finite(l, s)
	}
	there := &slot.Slot{Step: s.Step, Roots: s.Roots}
	for i := range s.Groups {
		if prepared(&s.Groups[i]) {
			there.Groups = append(there.Groups, s.Groups[i])
		}
	}
	return n.Batched.Finite(l, there)
}

// Stage implements Method: groups of other phases are not there any more.
func (n *Method) Stage(l *train.Learner, s *slot.Slot, g *slot.Group) string {
	if n.runs > 1 && !prepared(g) {
		return ""
	}
	return n.Batched.Stage(l, s, g)
}

// prepared reports whether a group's input is there.
func prepared(g *slot.Group) bool {
	return g.Input.Sparse != nil || g.Input.Dense != (tensor.Matrix{})
}
