package p3

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Where sums are those of blocks and grains, gradients are the same bits on any number
// of nodes, and on all nodes in any case.
func TestBits(t *testing.T) {
	for _, c := range []struct {
		name          string
		kind          kindOf
		deterministic bool
	}{
		{"gcn", denseKind, true}, {"residual sage", halfKind, true}, {"gin", sparseKind, true},
		{"residual sage", countsKind, true}, {"mlp", sparseKind, true}, {"gcn", denseKind, false},
		{"residual gat", scaledKind, true}, {"gat", sparseKind, true}, {"gatv2", countsKind, true}, {"gatv2", denseKind, false},
	} {
		j := newJob(specs()[c.name], c.kind, 150)
		j.deterministic = c.deterministic
		j.device = func() tensor.Device { return cpu.New(1) }
		var want []float64
		for _, nodes := range []int{1, 2, 5} {
			if !c.deterministic {
				want = nil
			}
			tb := j.sit(t, nodes)
			for _, s := range tb.seats {
				s.front.From(1, 0)
			}
			if err := tb.run(t.Context(), 1, 0, rootsOf(j, 0, 20)); err != nil {
				t.Fatal(err)
			}
			for _, s := range tb.seats {
				got := s.gradient()
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("%+v: node %d of %d has other bits, %.3g off", c, s.node, nodes, distance(got, want))
				}
			}
		}
	}
}

// Steps are made ready ahead by several goroutines on each node, some nodes far ahead of
// others: one without columns waits for the others all the same.
func TestStepsAhead(t *testing.T) {
	const steps, slots, nodes = 12, 4, 3
	j := newJob(specs()["gcn"], denseKind, 2) // node 0 has no columns
	want := make([][]float64, steps)
	for step := range steps {
		want[step], _ = j.single(t, 1, step, rootsOf(j, step, 17))
	}
	tb := j.sit(t, nodes)
	if err := tb.each(func(s *seat) error { return s.pipeline(t, steps, slots, want) }); err != nil {
		t.Error(err)
	}
}

// A slot is a batch with what it takes to make it ready.
type slotOf struct {
	seat  *seat
	ready chan error
	free  chan struct{}
}

// another is one of the same node with memory of its own, for another step.
func (s *seat) another(t testing.TB) *seat {
	t.Helper()
	one := s.j.device()
	t.Cleanup(one.Close)
	o := &seat{j: s.j, node: s.node, front: s.front, model: s.model, device: s.device, pass: s.pass, batch: s.front.NewBatch(), sampler: s.j.sampler(t, s.model)}
	o.hand = Hand{one, arena(t, one), arena(t, one)}
	var err error
	if o.dealer, err = Deal(s.j.layout(s.front.nodes), settings(s.j)); err != nil {
		t.Fatal(err)
	}
	return o
}

func (s *seat) pipeline(t *testing.T, steps, slots int, want [][]float64) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []*slotOf
	for range slots {
		o := &slotOf{seat: s.another(t), ready: make(chan error, 1), free: make(chan struct{}, 1)}
		o.free <- struct{}{}
		all = append(all, o)
	}
	s.front.From(1, 0)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i, o := range all {
		running.Go(func() {
			for step := i; step < steps; step += slots {
				select {
				case <-o.free:
				case <-ctx.Done():
					return
				}
				o.ready <- o.seat.ahead(ctx, 1, step, rootsOf(s.j, step, 17))
			}
		})
	}
	for step := range steps {
		o := all[step%slots]
		if err := <-o.ready; err != nil {
			return err
		}
		s.batch, s.groups, s.blocks = o.seat.batch, o.seat.groups, o.seat.blocks
		if err := s.step(ctx, 1, step, rootsOf(s.j, step, 17)); err != nil {
			return err
		}
		if d := distance(s.gradient(), want[step]); !(d < 1e-10) {
			return fmt.Errorf("node %d, step %d: the gradient is %.3g off", s.node, step, d)
		}
		o.free <- struct{}{}
	}
	return nil
}
