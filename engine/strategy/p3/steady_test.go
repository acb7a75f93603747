package p3

import (
	"context"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// A wire is Peers that allocate nothing, so that what a front allocates is seen.
type wire struct {
	self    int
	all     []*wire
	handler peer.Handler
	asks    chan *wired // as many as there may be questions at once
}

type wired struct {
	buf   []byte
	reply func(parts ...[]byte) error
}

func newWires(nodes int) []*wire {
	all := make([]*wire, nodes)
	for i := range all {
		w := &wire{self: i, all: all, asks: make(chan *wired, 16*nodes)}
		for range cap(w.asks) {
			a := &wired{}
			a.reply = func(parts ...[]byte) error {
				n := 0
				for _, p := range parts {
					n += copy(a.buf[n:], p)
				}
				a.buf = a.buf[:n]
				return nil
			}
			w.asks <- a
		}
		all[i] = w
	}
	return all
}

func (w *wire) Answer(_ peer.Service, h peer.Handler) { w.handler = h }
func (w *wire) Open()                                 {}
func (w *wire) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	a := <-w.asks
	defer func() { w.asks <- a }()
	a.buf = buf
	if err := w.all[node].handler(ctx, w.self, q, a.reply); err != nil {
		return nil, err
	}
	return a.buf, nil
}

// A step that is made ready and computed takes nothing of Go's heap.
func TestStepsAllocateNothing(t *testing.T) {
	for _, k := range []kindOf{halfKind, sparseKind} {
		for _, deterministic := range []bool{false, true} {
			for _, inflight := range []int{1, 3} {
				allocateNothing(t, k, deterministic, inflight)
			}
		}
	}
}

func allocateNothing(t *testing.T, k kindOf, deterministic bool, inflight int) {
	const nodes = 3
	j := newJob(specs()["residual sage"], k, 30)
	j.deterministic, j.resample, j.inflight = deterministic, deterministic, inflight
	j.device = func() tensor.Device { return cpu.New(1) }
	tb := j.sit(t, nodes)
	wires := newWires(nodes)
	begin, done := make([]chan int, nodes), make(chan error)
	roots := rootsOf(j, 0, 20)
	ctx := t.Context()
	for i, s := range tb.seats {
		x := exchange.New(wires[i], s.front.work)
		s.front.exchange = x
		s.front.blocks.init(x, nodes)
		s.front.takes.init(x, nodes)
		for _, l := range s.front.hangar {
			l.takes.init(x, nodes)
		}
		s.front.From(1, 0)
		begin[i] = make(chan int)
		line, mine := make([]float32, 1), make([][]float32, 1)
		mine[0] = line
		slots := []*seat{s} // that are used in turn
		for len(slots) < inflight {
			slots = append(slots, s.another(t))
		}
		sent := 0
		do := func(step int) error {
			for ; sent < step+inflight; sent++ {
				s := slots[sent%inflight]
				if err := s.ahead(ctx, 1, sent, roots); err != nil {
					return err
				}
				if err := s.send(ctx, 1, sent); err != nil {
					return err
				}
			}
			s := slots[step%inflight]
			if err := s.front.Sums(s.batch); err != nil {
				return err
			}
			n := 0
			for i, g := range s.groups {
				if len(g.Roots) > 0 {
					s.device.Combine(s.batch.Error(n), 1, s.batch.Sum(n), 0, tensor.Matrix{})
					n += min(1, len(s.blocks[i].Blocks))
				}
			}
			if err := s.front.Back(ctx, s.batch, 1); err != nil {
				return err
			}
			if _, err := exchange.Reduce(ctx, x, exchange.Round{Tag: exchange.Tag{Epoch: 1, Step: uint32(step)}}, mine, line); err != nil {
				return err
			}
			return s.front.Done(ctx, s.batch)
		}
		go func() {
			for n := range begin[i] {
				done <- do(n)
			}
		}()
	}
	n := 0
	run := func() {
		for _, b := range begin {
			b <- n
		}
		n++
		for range nodes {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 40 + 200*(inflight-1) { // until the largest batches were seen
		run()
	}
	if got := testing.AllocsPerRun(50, run); got > 0 {
		t.Errorf("%+v, deterministic %v, %d under way: a step on %d nodes allocates %v times", k, deterministic, inflight, nodes, got)
	}
	for _, b := range begin {
		close(b)
	}
}
