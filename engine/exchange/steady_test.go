package exchange

import (
	"context"
	"errors"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A wire is Peers that allocate nothing, so that what an exchange allocates is seen.
// Each node asks another one question at a time.
type wire struct {
	self    int
	all     []*wire
	handler peer.Handler
	asks    []*wired // of each node
}

// A wired answer.
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

func (w *wire) Answer(_ peer.Service, h peer.Handler) { w.handler = h }
func (w *wire) Open()                                 {}
func (w *wire) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	if len(buf) < 16 {
		buf = make([]byte, 16) // the first message of Gather
	}
	a := w.asks[node]
	a.buf = buf
	if err := w.all[node].handler(ctx, w.self, q, a.reply); err != nil {
		return nil, err
	}
	return a.buf, nil
}

func TestStepsAllocateNothing(t *testing.T) {
	const nodes, columns = 3, 1000
	wires := newWires(nodes)
	begin, done := make([]chan uint32, nodes), make(chan error)
	holders := []int{0, 0, 1, 0, 1, 1, -1, 2, 2, 0, 1, 2}
	ctx := t.Context()
	for node, w := range wires {
		x := New(w, work(nodes, node))
		begin[node] = make(chan uint32)
		to, line, message := make([]float32, columns), [][]float32{make([]float32, columns)}, []byte("a message")
		s := NewSummer[float32](columns)
		var spans [][]Span
		step := func(n uint32) error {
			tag := Tag{Epoch: 1, Step: n}
			if _, err := Reduce(ctx, x, Round{Tag: tag}, line, to); err != nil {
				return err
			}
			spans = SpansTo(spans, holders, nodes)
			s.Begin(spans[node])
			for leaf, h := range holders {
				if h == node {
					clear(s.Row(leaf))
				}
			}
			tag.Index = 1
			if _, err := Reduce(ctx, x, Round{Tag: tag, Spans: spans}, s.Sums(), to); err != nil {
				return err
			}
			got, err := x.Gather(ctx, tag, message, nil)
			if err == nil && string(got[(node+1)%nodes]) != "a message" {
				return errors.New("a message is lost")
			}
			return err
		}
		go func() {
			for n := range begin[node] {
				done <- step(n)
			}
		}()
	}
	n := uint32(0)
	run := func() {
		for _, b := range begin {
			b <- n
		}
		n++
		for range nodes {
			must(t, <-done)
		}
	}
	for range 50 { // all that is used again is there, and waiters, however many wait
		run()
	}
	if got := testing.AllocsPerRun(200, run); got > 0 {
		t.Errorf("a step on %d nodes allocates %v times", nodes, got)
	}
	for _, b := range begin {
		close(b)
	}
}
