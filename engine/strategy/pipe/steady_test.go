package pipe

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// sparePeers are Peers that allocate nothing, so that what a worker allocates is seen.
type sparePeers struct {
	self    int
	all     []*sparePeers
	handler peer.Handler
	mu      sync.Mutex
	idle    []*answer
}

// An answer is one that is written where the question said.
type answer struct {
	to    []byte
	reply func(parts ...[]byte) error
}

func (w *sparePeers) Answer(_ peer.Service, h peer.Handler) { w.handler = h }
func (w *sparePeers) Open()                                 {}
func (w *sparePeers) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	a := w.answer()
	a.to = buf
	err := w.all[node].handler(ctx, w.self, q, a.reply)
	to := a.to
	w.mu.Lock()
	w.idle = append(w.idle, a)
	w.mu.Unlock()
	return to, err
}

func (w *sparePeers) answer() *answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.idle); n > 0 {
		a := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return a
	}
	a := &answer{}
	a.reply = func(parts ...[]byte) error {
		n := 0
		for _, p := range parts {
			n += len(p)
		}
		if n > len(a.to) {
			a.to = make([]byte, n) // the first that is as long
		}
		n = 0
		for _, p := range parts {
			n += copy(a.to[n:], p)
		}
		a.to = a.to[:n]
		return nil
	}
	return a
}

// prepared is Features that are made once.
type prepared struct{ inputs map[*uint32]nn.Input }

func (p prepared) Input(_, _ int, vertices []uint32) (nn.Input, error) {
	return p.inputs[&vertices[0]], nil
}

// An epoch that is not the first of a period allocates nothing, whatever travels.
func TestEpochsAllocateNothing(t *testing.T) {
	for _, c := range []struct {
		model                string
		stages, ways, chunks int
		halo                 Halo
		keep                 bool
	}{
		{"gcnii", 1, 3, 3, Halo{Policy: Exact}, true}, {"sage", 1, 2, 2, Halo{Policy: Exact}, true},
		{"gcn", 1, 2, 2, Halo{Policy: Previous}, true}, {"gcn", 1, 2, 2, Halo{Policy: Sampled, Share: 0.5}, true}, {"gcn", 1, 2, 2, Halo{Policy: Skip, Age: 1}, true},
		{"gcnii", 2, 1, 6, Halo{Policy: Exact}, false}, {"resgcn", 2, 2, 6, Halo{Policy: Exact}, false}, {"gat", 1, 1, 3, Halo{Policy: Exact}, false},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			w := newWorld(t, 1, sizes, anywhere)
			s := newSetup(deep(c.model, 3), c.stages, c.ways, c.chunks)
			s.Halo, s.Recompute, s.Period = c.halo, !c.keep, 1<<20
			s.device = func() tensor.Device { return cpu.New(1) }
			wires := make([]*sparePeers, s.nodes)
			for i := range wires {
				wires[i] = &sparePeers{self: i, all: wires}
			}
			s.peers = func(i int) peer.Peers { return wires[i] }
			j := w.start(t, s)
			begin, done := make([]chan int, s.nodes), make(chan error)
			for i, n := range j.nodes {
				inputs := prepared{map[*uint32]nn.Input{}}
				lists, _, _ := n.Reads()
				for _, vertices := range lists {
					if len(vertices) == 0 {
						continue
					}
					inputs.inputs[&vertices[0]] = w.input(n.Device, vertices)
				}
				n.Features = inputs
				begin[i] = make(chan int)
				ctx, key := t.Context(), s.dropout(1)
				go func() {
					for epoch := range begin[i] {
						_, _, err := n.Epoch(ctx, epoch, key, 0, &n.tally)
						done <- err
					}
				}()
			}
			epoch := 0
			run := func() {
				epoch++
				for _, b := range begin {
					b <- epoch
				}
				for range j.nodes {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			}
			for range 60 {
				run()
			}
			if got := testing.AllocsPerRun(50, run); got > 0 {
				t.Errorf("an epoch on %d nodes allocates %v times", s.nodes, got)
			}
			for _, b := range begin {
				close(b)
			}
		})
	}
}

var _ peer.Peers = (*sparePeers)(nil)
