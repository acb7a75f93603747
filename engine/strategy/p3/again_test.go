package p3

import (
	"context"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A doubting node asks each question once more beside, as over connections that break:
// that answer may come when the step is long over.
type doubting struct {
	peer.Peers
	beside *sync.WaitGroup
}

func (d doubting) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	again := q
	again.Tally, again.Body = nil, append([]byte(nil), q.Body...)
	d.beside.Go(func() {
		// Refused or not, it is of no use to anybody.
		_, _ = d.Peers.Ask(ctx, node, again, nil)
	})
	return d.Peers.Ask(ctx, node, q, buf)
}

// Nobody writes to what is still being read for a question that was asked again: the
// race detector sees it.
func TestQuestionsAreAskedAgain(t *testing.T) {
	const nodes = 3
	j := newJob(specs()["sage"], denseKind, 20)
	tb := j.sit(t, nodes)
	var beside sync.WaitGroup
	for i, s := range tb.seats {
		s.exchange = exchange.New(doubting{tb.net.Node(i), &beside}, s.front.work)
		s.front.exchange = s.exchange
		s.front.blocks.init(s.exchange, nodes)
		s.front.takes.init(s.exchange, nodes)
		s.front.hangar[0].takes.init(s.exchange, nodes)
		s.front.From(1, 0)
	}
	for step := range 30 {
		if err := tb.run(t.Context(), 1, step, rootsOf(j, step, 17)); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := j.single(t, 1, 29, rootsOf(j, 29, 17))
	for _, s := range tb.seats {
		if d := distance(s.gradient(), want); !(d < 1e-10) {
			t.Errorf("node %d is %.3g off", s.node, d)
		}
	}
	beside.Wait()
}

// An arena that counts what it hands out between two resets.
type countedArena struct {
	tensor.Arena
	bytes, most uint64
}

func (c *countedArena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	c.bytes += uint64(rows * cols * t.Bytes())
	c.most = max(c.most, c.bytes)
	return c.Arena.Alloc(t, rows, cols)
}

func (c *countedArena) Reset() {
	c.bytes = 0
	c.Arena.Reset()
}

// outlineOf returns the sizes of a seat's batch.
func outlineOf(s *seat) *slot.Outline {
	o := &slot.Outline{Others: make([][]slot.Shape, len(s.batch.nodes))}
	for _, g := range s.batch.groups {
		shape := slot.Shape{
			Group:  deal.Group{Roots: make([]uint32, g.block.Rows)},
			Blocks: []nn.Size{{Targets: g.block.Rows, Sources: g.block.Cols, Entries: g.block.Entries()}},
		}
		if g.node == s.node {
			o.Groups = append(o.Groups, shape)
		} else {
			o.Others[g.node] = append(o.Others[g.node], shape)
		}
	}
	return o
}

// What a step is forecast to take is not less than what it takes, nor much more.
func TestForecast(t *testing.T) {
	for _, k := range []kindOf{denseKind, sparseKind} {
		for _, deterministic := range []bool{false, true} {
			j := newJob(specs()["residual sage"], k, 100)
			j.deterministic = deterministic
			tb := j.sit(t, 3)
			for _, s := range tb.seats {
				s.front.arena = &countedArena{Arena: s.front.arena}
				s.front.From(1, 0)
			}
			if err := tb.run(t.Context(), 1, 0, rootsOf(j, 0, 30)); err != nil {
				t.Fatal(err)
			}
			for _, s := range tb.seats {
				took := s.front.arena.(*countedArena).most
				l := s.front.hangar[0]
				for _, some := range [][][]byte{l.partials, l.theirs, s.front.theirs, s.front.sent[:], {s.front.ring[0].body}} {
					for _, b := range some {
						took += uint64(len(b))
					}
				}
				if got := s.front.Forecast(outlineOf(s)); got < took || got > 4*took {
					t.Errorf("%+v, deterministic %v: node %d takes %d bytes, and %d were forecast", k, deterministic, s.node, took, got)
				}
			}
		}
	}
}
