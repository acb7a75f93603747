package evaluate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

var errEnough = errors.New("enough")

const plenty = 1 << 40 // of memory

// A setup is what an evaluator of the tests is of.
type setup struct {
	spec     nn.Spec
	metric   string
	topology string
	features string // normalisation
	wide     bool   // on the reference device, in float64
	dir      string
}

func (s setup) normalise() string {
	if s.features == "" {
		return "none"
	}
	return s.features
}

// A member is one node's evaluator of a model with fresh weights.
type member struct {
	*Evaluator
	view  *View
	epoch int
}

func (m *member) evaluate(ctx context.Context) (*Result, error) {
	return m.Evaluate(ctx, m.view, Moment{Epoch: m.epoch, Step: 1}, sound)
}

func sound() error { return nil }

// all is how many stages the model has.
func (m *member) all() int { return len(m.now.stages) }

func (s setup) open(t testing.TB, d *dataset.Graph, nodes Nodes) (*member, error) {
	t.Helper()
	model, err := nn.New(s.spec, d.About.Features, d.About.Classes)
	if err != nil {
		return nil, err
	}
	initial, err := model.Initial(t.Context(), 5)
	if err != nil {
		return nil, err
	}
	var device tensor.Device = cpu.New(1)
	if s.wide {
		device = reference.New()
	}
	t.Cleanup(func() { device.Close() })
	arenas := [2]tensor.Arena{}
	for i := range arenas {
		if arenas[i], err = device.NewArena(0); err != nil {
			return nil, err
		}
		t.Cleanup(func() { arenas[i].Close() })
	}
	weights := arenas[1].Alloc(device.Type(), 1, model.Size())
	device.Write(weights, initial)
	m := &member{Evaluator: New(d, nodes, task.Spec{Loss: task.Softmax, Metric: s.metric, Width: d.About.Classes})}
	m.view = m.Add(model, weights)
	t.Cleanup(m.Close)
	return m, m.Open(device, arenas[0], Options{Memory: plenty, Dir: s.dir, Threads: 1})
}

// alone is the evaluator of a node that has the whole graph.
func (s setup) alone(t testing.TB, shards []*graph.Shard) *member {
	t.Helper()
	d, err := dataset.Open(shards, 0, s.normalise())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.open(t, d, Nodes{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A mesh is the nodes of a run in this process.
type mesh struct {
	net    *loopback.Net
	owners []int
	names  []string
}

func newMesh(nodes int, owners []int) *mesh {
	m := &mesh{net: loopback.New(nodes), owners: owners}
	for i := range nodes {
		m.names = append(m.names, fmt.Sprintf("n%d", i))
	}
	return m
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

// start opens the evaluators of all nodes, which hold the shards that they own.
func (m *mesh) start(t testing.TB, s setup, shards []*graph.Shard) []*member {
	t.Helper()
	all := make([]*member, len(m.names))
	err := m.each(func(node int) error {
		peers, work := m.net.Node(node), peer.Work{Nodes: m.names, Self: node, Owners: m.owners}
		held := make([]*graph.Shard, len(shards))
		for i, shard := range shards {
			if m.owners[i] == node {
				held[i] = shard
			}
		}
		x := exchange.New(peers, work)
		replica.Serve(peers, held)
		source := gather.Register(peers)
		peers.Open()
		r, err := replica.Bring(t.Context(), peers, work, held, replica.Options{
			Topology: s.topology, Memory: plenty, Tally: new(peer.Tally), Bare: true,
		})
		if err != nil {
			return err
		}
		d, err := dataset.OpenPart(held, r, 0, s.normalise())
		if err != nil {
			return err
		}
		layout := peer.Layout{Nodes: len(m.names), Owners: m.owners, Firsts: dataset.Firsts(r.Shards)}
		if err := source.Ready(d.Features, work, layout, ""); err != nil {
			return err
		}
		all[node], err = s.open(t, d, Nodes{Exchange: x, Work: work, Layout: layout, Source: source})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// evaluated is what each node returns of an epoch, evaluated by all at once.
func (m *mesh) evaluated(t *testing.T, all []*member, epoch int) []*Result {
	t.Helper()
	results := make([]*Result, len(all))
	err := m.each(func(node int) (err error) {
		all[node].epoch = epoch
		results[node], err = all[node].evaluate(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return results
}
