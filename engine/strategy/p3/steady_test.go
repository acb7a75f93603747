package p3

import (
	"context"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// A wire is Peers that allocate nothing, so that what a front allocates is seen. Each
// node asks another one question at a time.
type wire struct {
	self    int
	all     []*wire
	handler strategy.Handler
	asks    []*wired // of each node
}

type wired struct {
	buf   []byte
	reply func(parts ...[]byte) error
}

func newWires(nodes int) []*wire {
	all := make([]*wire, nodes)
	for i := range all {
		w := &wire{self: i, all: all}
		for range nodes {
			a := &wired{}
			a.reply = func(parts ...[]byte) error {
				n := 0
				for _, p := range parts {
					n += copy(a.buf[n:], p)
				}
				a.buf = a.buf[:n]
				return nil
			}
			w.asks = append(w.asks, a)
		}
		all[i] = w
	}
	return all
}

func (w *wire) Answer(_ strategy.Service, h strategy.Handler) { w.handler = h }
func (w *wire) Open()                                         {}
func (w *wire) Ask(ctx context.Context, node int, q strategy.Query, buf []byte) ([]byte, error) {
	a := w.asks[node]
	a.buf = buf
	if err := w.all[node].handler(ctx, w.self, q, a.reply); err != nil {
		return nil, err
	}
	return a.buf, nil
}

// A step that is made ready and computed takes nothing of Go's heap.
func TestStepsAllocateNothing(t *testing.T) {
	const nodes = 3
	for _, k := range []kindOf{halfKind, sparseKind} {
		for _, deterministic := range []bool{false, true} {
			j := newJob(specs()["residual sage"], k, 30)
			j.deterministic, j.resample = deterministic, deterministic
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
				s.front.hangar[0].takes.init(x, nodes)
				s.front.From(1, 0)
				begin[i] = make(chan int)
				line, mine := make([]float32, 1), make([][]float32, 1)
				mine[0] = line
				do := func(step int) error {
					if err := s.ahead(ctx, 1, step, roots); err != nil {
						return err
					}
					if err := s.send(ctx, 1, step); err != nil {
						return err
					}
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
			for range 40 {
				run()
			}
			if got := testing.AllocsPerRun(50, run); got > 0 {
				t.Errorf("%+v, deterministic %v: a step on %d nodes allocates %v times", k, deterministic, nodes, got)
			}
			for _, b := range begin {
				close(b)
			}
		}
	}
}
