package traintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Strategies are those of a mesh whose options name none.
var Strategies = train.Strategies{auto.Strategy, batched.Single, centric.Strategy, leap.Strategy}

// Tiny returns the shards of a graph for the reference device, which is slow.
func Tiny(t testing.TB, vertices, shards int) []*graph.Shard {
	t.Helper()
	return enginetest.Tiny(t, vertices, shards)
}

// Uneven returns owners for so many shards: node 0 has most, and of three nodes or more
// one has none.
func Uneven(shards, nodes int) []int { return enginetest.Uneven(shards, nodes) }

// A Mesh is the nodes of a job in this process.
type Mesh struct {
	Net    *loopback.Net
	Owners []int
	Names  []string
	Copies bool // a node holds the shards after its own, too
	// holders are the nodes that hold a shard beside its owner.
	holders [][]int
}

// NewMesh returns a mesh of so many nodes.
func NewMesh(nodes int, owners []int) *Mesh {
	m := &Mesh{Net: loopback.New(nodes), Owners: owners}
	for i := range nodes {
		m.Names = append(m.Names, fmt.Sprintf("n%d", i))
	}
	return m
}

// Of returns the shards that a node holds, and its options.
func (m *Mesh) Of(node int, shards []*graph.Shard, o train.Options) ([]*graph.Shard, train.Options) {
	held := make([]*graph.Shard, len(shards))
	for i, s := range shards {
		if m.Owners[i] == node || m.Copies && i > 0 && m.Owners[i-1] == node || m.holders != nil && slices.Contains(m.holders[i], node) {
			held[i] = s
		}
	}
	o.Peers, o.Work = m.Net.Node(node), peer.Work{Nodes: m.Names, Self: node, Owners: m.Owners, Holders: m.holders}
	if o.Strategies == nil {
		o.Strategies = Strategies
	}
	return held, o
}

// Each calls do for all nodes at once, and returns their errors.
func (m *Mesh) Each(do func(node int) error) error {
	errs := make([]error, len(m.Names))
	var running sync.WaitGroup
	for node := range m.Names {
		running.Go(func() { errs[node] = do(node) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// patience is how long the other nodes have to end when one has failed.
const patience = 20 * time.Second

// each is Each, with a context that ends some time after a node has failed, so that no
// other waits for it for ever.
func (m *Mesh) each(ctx context.Context, do func(ctx context.Context, node int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	return m.Each(func(node int) error {
		err := do(ctx, node)
		if err != nil {
			time.AfterFunc(patience, func() { cancel(fmt.Errorf("node %d has failed: %w", node, err)) })
		}
		return err
	})
}

// Start makes a run on each node and returns their models, ready to train.
func (m *Mesh) Start(t testing.TB, r recipe.Recipe, shards []*graph.Shard, o train.Options) []*train.Learner {
	t.Helper()
	all := make([]*train.Learner, len(m.Names))
	err := m.each(t.Context(), func(ctx context.Context, node int) error {
		held, own := m.Of(node, shards, o)
		tr, err := train.NewTrainer(ctx, r, held, own)
		if err != nil {
			return err
		}
		all[node] = tr.Learners[0]
		if !tr.Session.Alone() {
			if err := tr.Meet(ctx); err != nil {
				return err
			}
		}
		return tr.Prepare(ctx)
	})
	t.Cleanup(func() {
		for _, tr := range all {
			if tr != nil {
				tr.Run.Close()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Evaluated returns what each node returns of the evaluation of an epoch.
func (m *Mesh) Evaluated(t *testing.T, all []*train.Learner, epoch int) []*evaluate.Result {
	t.Helper()
	results := make([]*evaluate.Result, len(all))
	err := m.Each(func(node int) (err error) {
		all[node].At.Epoch = epoch
		results[node], err = all[node].Evaluate(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// Run runs a job on all nodes, and returns the result and the epochs of each. dir returns
// the folder of a node's checkpoints, and of files with other nodes' edges; nil: none are kept.
func (m *Mesh) Run(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, o train.Options, dir func(node int) string) ([]train.Result, [][]trained.Epoch, error) {
	results, epochs := make([]train.Result, len(m.Names)), make([][]trained.Epoch, len(m.Names))
	err := m.each(ctx, func(ctx context.Context, node int) (err error) {
		held, own := m.Of(node, shards, o)
		own.Report = func(e trained.Epoch) { epochs[node] = append(epochs[node], e) }
		if dir != nil {
			own.Dir = dir(node)
			own.Replicas = replica.NewCache(own.Dir)
			defer func() { err = errors.Join(err, own.Replicas.Close()) }()
		}
		results[node], err = train.Run(ctx, r, held, own)
		if err != nil {
			return fmt.Errorf("node %d: %w", node, err)
		}
		return nil
	})
	return results, epochs, err
}

// MustRun is Run without checkpoints, and fails the test if a node fails.
func (m *Mesh) MustRun(t testing.TB, r recipe.Recipe, shards []*graph.Shard, o train.Options) ([]train.Result, [][]trained.Epoch) {
	t.Helper()
	results, epochs, err := m.Run(t.Context(), r, shards, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return results, epochs
}

// StepOnce prepares and trains one step of an epoch, and returns its loss.
func StepOnce(ctx context.Context, t *train.Learner, epoch, step int) (float64, error) {
	t.At.Epoch = epoch
	t.Run.Method.BeginSteps(epoch, step)
	defer t.Run.Method.EndSteps()
	t.Run.Batches.Shuffle(epoch)
	s := t.Run.Batches.Slots[0]
	t.Run.Batches.Set(s, step)
	if err := t.Run.Method.Prepare(ctx, t.Run.Batches.Workers[0], s, epoch); err != nil {
		return 0, err
	}
	if err := t.Run.Arrive(ctx, s); err != nil {
		return 0, err
	}
	loss, _, err := t.Run.Method.Step(ctx, t, s, nil, t.Recipe.Rate)
	return loss, err
}

// GradientOf returns the gradient of the last step.
func GradientOf(t *train.Learner) []float64 {
	g := make([]float64, t.Model.Size())
	if t.Run.Device.Type() == tensor.F64 {
		t.Run.Device.Read(g, t.Gradients)
		return g
	}
	for i, x := range t.Gradients.F32() {
		g[i] = float64(x)
	}
	return g
}

// Wide returns options with the reference device.
func Wide(o train.Options) train.Options {
	o.Device = func(int) (tensor.Device, error) { return reference.New(), nil }
	return o
}

// IsolatedOf returns the method of a learner that trains by grappa.
func IsolatedOf(l *train.Learner) *grappa.Method { return l.Run.Method.(*grappa.Method) }

// PipedOf returns the method of a learner that trains by pipe or graph.
func PipedOf(l *train.Learner) *pipe.Method { return l.Run.Method.(*pipe.Method) }

// BatchedOf returns the part of a learner's method that trains mini-batches.
func BatchedOf(l *train.Learner) *batched.Batched {
	switch m := l.Run.Method.(type) {
	case *grappa.Method:
		return m.Batched
	case *p3.Method:
		return m.Batched
	}
	return l.Run.Method.(*batched.Batched)
}

// LocalOf returns the state of a learner whose models are averaged.
func LocalOf(l *train.Learner) *batched.Local {
	return BatchedOf(l).Updates.(*batched.Locals).All[l.Index]
}

// Copied makes so many nodes after a shard's owner hold it too, as far as there are nodes.
func (m *Mesh) Copied(copies int) *Mesh {
	nodes := len(m.Names)
	m.holders = make([][]int, len(m.Owners))
	for shard, owner := range m.Owners {
		for n := range min(copies, nodes-1) {
			m.holders[shard] = append(m.holders[shard], (owner+1+n)%nodes)
		}
		slices.Sort(m.holders[shard])
	}
	return m
}

// Together is Each with a context that ends when a node fails, for which others may wait.
func (m *Mesh) Together(t *testing.T, do func(ctx context.Context, node int) error) error {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	return m.Each(func(node int) error {
		err := do(ctx, node)
		if err != nil {
			cancel(err)
		}
		return err
	})
}
