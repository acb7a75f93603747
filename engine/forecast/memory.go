package forecast

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/task"
)

// Memory is added up by package fit, as a run does it.

// sizes are the largest that were seen of a node's steps.
type sizes struct {
	fit.Needs
	edges uint64 // of other nodes' shards, where they are here
	held  uint64 // by the strategy
	learnt
}

// see adds a step of a node.
func (z *sizes) see(j *job, of *Strategy, step *Step, node int, l *load) {
	form := j.model.Form()
	s := &fit.Step{
		Alone: step.Nodes == 1, Valued: form.Valued() || l.sight != nil,
		Late:     j.Recipe.Embeddings > 0 || step.Nodes > 1 && !j.same && !j.Graph.Sparse && l.sight == nil,
		Vertices: int(j.Graph.About.Vertices), Classes: j.Graph.About.Classes, Words: j.Graph.About.Words(), Copied: task.New(j.Recipe.TaskSpec(&j.Graph.About)).OnProcessor(),
	}
	for i := range step.Loads {
		s.Roots += step.Loads[i].Roots
	}
	if of := j.Graph.pairs; of != nil {
		s.Roots = len(j.steps[step.Index])
		s.More.Slot += of.StepBytes(s.Roots)
	}
	places := 0
	for _, g := range l.groups {
		s.Groups = append(s.Groups, slot.Shape{Group: deal.Group{Roots: g.seeds}, Blocks: g.blocks})
		places += g.inputs
		for _, size := range g.blocks {
			s.More.Slot += form.RelatedBytes(size, true)
		}
	}
	s.Far = fit.Far(l.remote, places, j.counter.row)
	s.Heap = uint64(float64(l.remote) * j.counter.row)
	if l.sight != nil {
		s.Far, s.Heap = fit.Far(0, places, 0), 0
	}
	s.Input = func(group int) (slot, rows uint64) {
		inputs := s.Groups[group].Inputs()
		if j.Graph.Sparse {
			return fit.Sparse(inputs, int(j.Graph.Entries*float64(inputs))), 0
		}
		rows = fit.Dense(inputs, j.Graph.Columns)
		return rows, rows
	}
	s.Passes = func(group int, see func(arena, beside int)) {
		inputs := s.Groups[group].Inputs()
		in := nn.InputSize{Rows: inputs, Sparse: j.Graph.Sparse}
		if in.Sparse {
			in.Entries = int(j.Graph.Entries * float64(inputs))
		}
		see(j.model.Forecast(in, s.Groups[group].Blocks))
	}
	z.Raise(budget.Step, embedding.StepBytes(z.learnt.rows, j.Recipe.Embeddings, places, step.Nodes, z.learnt.apart, j.Recipe.Optimizer))
	if of.Takes != nil {
		z.Raise(budget.Step, of.Takes(step, node, s))
	}
	z.See(s)
}

// needs returns the memory of a node whose steps are of these sizes.
func (z *sizes) needs(j *job, m *mesh, isolated bool) (n fit.Needs, err error) {
	n = z.Needs
	hands, depth := ahead(j.count, m.layout.Nodes)
	n.Ahead(depth, hands, j.same)
	alone := m.layout.Nodes == 1
	weights, rows := uint64(4*j.model.Size()), uint64(7+len(j.Recipe.Optimizer.Moments()))
	if !alone || j.Recipe.Sharing.Deterministic {
		rows += 3 + 2 // sums, and a model on its way
		if j.Recipe.Sharing.Deterministic {
			rows += 3 * uint64(bits.Len(uint(len(m.layout.Owners))))
		}
	}
	if z.learnt.apart {
		rows += 2 + uint64(len(j.Recipe.Optimizer.Moments())) // what they were before an update, with the best
	}
	n.Add(budget.Weights, rows*weights+embedding.Bytes(z.learnt.rows, j.Graph.Columns-j.Recipe.Embeddings, j.Recipe.Embeddings, j.Recipe.Optimizer))
	n.Add(budget.Weights, task.Bytes(j.model.Added()))
	n.Add(budget.Graph, z.held+4*uint64(len(j.Graph.Training))+j.Graph.copied+j.pairBytes(m.most(), m.layout.Nodes))
	// Edges of other nodes are taken to lie in files, which are no memory that a run must have.
	// Where the folder of jobs is memory itself, a run keeps them in memory, and needs that more.
	n.Set(budget.Mapped, z.edges)
	here := float64(j.Graph.About.Vertices) // vertices whose edges are here
	if z.edges == 0 && !alone {
		here = float64(m.most())
	}
	switch form := j.model.Form(); {
	case isolated:
	case form.Weighting == sample.Symmetric:
		n.Add(budget.Graph, uint64(4*here))
	case form.SelfLoops:
		n.Add(budget.Graph, uint64(here/8))
	}
	err = j.infers(m, &n)
	return n, err
}

// pairBytes returns what a node takes of memory to learn and score pairs, beside its steps; own is how
// many vertices it has.
func (j *job) pairBytes(own, nodes int) uint64 {
	of := j.Graph.pairs
	if of == nil {
		return 0
	}
	scorer := link.NewScorer(of, j.Recipe.Loss, link.Threads{})
	return evaluate.PairBytes(&j.Graph.About, own, nodes, scorer)
}

// infers adds the memory of exact inference on the node where that is most.
func (j *job) infers(m *mesh, n *fit.Needs) error {
	once := j.Recipe.EvalEvery >= j.Recipe.Epochs
	if once {
		_, depth := ahead(j.count, m.layout.Nodes)
		n.GivesBack(depth)
	}
	n.Bound(j.Memory, once, m.layout.Nodes == 1)
	if m.halos == nil {
		m.halos = j.Graph.halos(m)
	}
	edges := j.Graph.edges(len(m.layout.Owners))
	all := make([]evaluate.Outlook, m.layout.Nodes)
	for node := range all {
		all[node] = evaluate.Outlook{
			Model: j.model, Topology: j.Graph.Topology, Columns: j.Graph.Columns, Sparse: j.Graph.Sparse, Entries: j.Graph.Entries,
			Alone: m.layout.Nodes == 1, Halo: m.halos[node], Once: once,
		}
	}
	for shard, owner := range m.layout.Owners {
		o := &all[owner]
		o.Rows, o.Edges = o.Rows+int(m.layout.Firsts[shard+1]-m.layout.Firsts[shard]), o.Edges+int(edges[shard])
	}
	// One of these needs most.
	for _, size := range []func(o *evaluate.Outlook) int{
		func(o *evaluate.Outlook) int { return o.Rows }, func(o *evaluate.Outlook) int { return o.Edges }, func(o *evaluate.Outlook) int { return o.Rows + o.Halo },
	} {
		o := slices.MaxFunc(all, func(a, b evaluate.Outlook) int { return cmp.Compare(size(&a), size(&b)) })
		i, err := o.Inference()
		if err != nil {
			return err
		}
		i.Expect(n.Of(budget.Pass), false, "")
		least := i.Least()
		n.Inference.Least = max(n.Inference.Least, least)
		n.Inference.Takes = max(n.Inference.Takes, least, i.Takes(n.Inference.May))
	}
	return nil
}

// halos returns, for each node, how many vertices of others there are from which there are
// edges into its own.
func (g *Graph) halos(m *mesh) []int {
	all := make([]int, m.layout.Nodes)
	if m.layout.Nodes == 1 {
		return all
	}
	into := make([][]Span, m.layout.Nodes)
	for shard, owner := range m.layout.Owners {
		into[owner] = append(into[owner], Span{m.layout.Firsts[shard], m.layout.Firsts[shard+1]})
	}
	var marks []uint64
	for node := range all {
		if g.MadeUp() {
			for shard, owner := range m.layout.Owners {
				if of := (Span{m.layout.Firsts[shard], m.layout.Firsts[shard+1]}); owner != node {
					all[node] += int(float64(of.End-of.First) * -math.Expm1(-g.Reached(joined(into[node]), of)))
				}
			}
			continue
		}
		if marks == nil {
			marks = make([]uint64, (g.Topology.Vertices()+63)/64)
		}
		clear(marks)
		for _, s := range into[node] {
			for v := s.First; v < s.End; v++ {
				sources, _ := g.Topology.Row(int(v))
				for _, u := range sources {
					marks[u/64] |= 1 << (u % 64)
				}
			}
		}
		all[node] = between(marks, 0, uint32(g.Topology.Vertices()))
		for _, s := range into[node] {
			all[node] -= between(marks, s.First, s.End)
		}
	}
	return all
}

// joined joins runs that follow each other.
func joined(runs []Span) (all []Span) {
	for _, s := range runs {
		if n := len(all); n > 0 && all[n-1].End == s.First {
			all[n-1].End = s.End
			continue
		}
		all = append(all, s)
	}
	return all
}
