package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/loopback"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

var strategies = []strategy.Strategy{centric.Strategy{}, leap.Strategy{}}

// tiny is a graph for the reference device, which is slow.
func tiny(t testing.TB, vertices, shards int) []*graph.Shard {
	t.Helper()
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(5 * vertices), Features: 6, Classes: 3, Communities: 6, Inside: 0.6, Homophily: 0.8, Seed: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	return cut(t, src, shards)
}

// uneven are owners of so many shards: node 0 has most, and of three nodes or more one
// has none.
func uneven(shards, nodes int) []int {
	owners := make([]int, shards)
	for i := range owners {
		switch {
		case i%2 == 1:
			owners[i] = nodes - 1
		case nodes > 3 && i == 2:
			owners[i] = 1
		case nodes > 4 && i == 4:
			owners[i] = 3
		}
	}
	return owners
}

// A mesh is the nodes of a job in this process.
type mesh struct {
	net    *loopback.Net
	owners []int
	names  []string
	copies bool // a node holds the shards after its own, too
	// holders hold shards beside their owners, and all know it.
	holders [][]int
}

func newMesh(nodes int, owners []int) *mesh {
	m := &mesh{net: loopback.New(nodes), owners: owners}
	for i := range nodes {
		m.names = append(m.names, fmt.Sprintf("n%d", i))
	}
	return m
}

// of is what a node is given, of the shards that it owns.
func (m *mesh) of(node int, shards []*graph.Shard, o Options) ([]*graph.Shard, Options) {
	held := make([]*graph.Shard, len(shards))
	for i, s := range shards {
		if m.owners[i] == node || m.copies && i > 0 && m.owners[i-1] == node || m.holders != nil && slices.Contains(m.holders[i], node) {
			held[i] = s
		}
	}
	o.Peers, o.Work = m.net.Node(node), strategy.Work{Nodes: m.names, Self: node, Owners: m.owners, Holders: m.holders}
	if o.Strategies == nil {
		o.Strategies = strategies
	}
	return held, o
}

// each does something for each node, all at once.
func (m *mesh) each(do func(node int) error) error {
	errs := make([]error, len(m.names))
	var running sync.WaitGroup
	for node := range m.names {
		running.Go(func() { errs[node] = do(node) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// start makes the models of all nodes, which are about to train.
func (m *mesh) start(t testing.TB, r Recipe, shards []*graph.Shard, o Options) []*learner {
	t.Helper()
	all := make([]*learner, len(m.names))
	err := m.each(func(node int) error {
		held, own := m.of(node, shards, o)
		tr, err := newTrainer(t.Context(), r, held, own)
		if err != nil {
			return err
		}
		all[node] = tr.learners[0]
		if tr.shared != nil {
			if err := tr.meet(t.Context()); err != nil {
				return err
			}
		}
		return tr.prepare(t.Context())
	})
	t.Cleanup(func() {
		for _, tr := range all {
			if tr != nil {
				tr.close()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// run runs a job on all nodes and returns what each has told. dir is where each keeps
// its checkpoints.
func (m *mesh) run(ctx context.Context, r Recipe, shards []*graph.Shard, o Options, dir func(node int) string) ([]Result, [][]Epoch, error) {
	results, told := make([]Result, len(m.names)), make([][]Epoch, len(m.names))
	err := m.each(func(node int) (err error) {
		held, own := m.of(node, shards, o)
		own.Report = func(e Epoch) { told[node] = append(told[node], e) }
		if dir != nil {
			own.Dir = dir(node)
		}
		results[node], err = Run(ctx, r, held, own)
		if err != nil {
			return fmt.Errorf("node %d: %w", node, err)
		}
		return nil
	})
	return results, told, err
}

func (m *mesh) mustRun(t testing.TB, r Recipe, shards []*graph.Shard, o Options) ([]Result, [][]Epoch) {
	t.Helper()
	results, told, err := m.run(t.Context(), r, shards, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return results, told
}

// one trains a step of an epoch with a slot of its own making.
func (t *learner) one(ctx context.Context, epoch, step int) (float64, error) {
	t.at.Epoch = epoch
	if t.front != nil {
		t.front.From(uint32(epoch), step)
	}
	t.batches.shuffle(epoch)
	s := t.batches.slots[0]
	t.batches.set(s, step)
	if err := t.batches.hands[0].fill(ctx, s, &t.phases, epoch); err != nil {
		return 0, err
	}
	loss, _, err := t.step(ctx, s, t.recipe.Rate)
	return loss, err
}

// gradient is that of the last step.
func (t *learner) gradient() []float64 {
	g := make([]float64, t.model.Size())
	if t.device.Type() == tensor.F64 {
		t.device.Read(g, t.gradients)
		return g
	}
	for i, x := range t.gradients.F32() {
		g[i] = float64(x)
	}
	return g
}

// wide is Options on the reference device.
func wide(o Options) Options {
	o.Device = func(int) (tensor.Device, error) { return reference.New(), nil }
	return o
}
