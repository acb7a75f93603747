package pipe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// Pieces are small, so that there are several.
func init() { pieceBytes = 64 }

// A slow device takes a second for whatever goes along edges, and no time for the rest.
type slow struct{ tensor.Device }

func (d slow) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	time.Sleep(time.Second)
	d.Device.Aggregate(y, g, values, x, how, add, e)
}

func (d slow) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	time.Sleep(time.Second)
	d.Device.AggregateBack(dx, g, values, dy, how, add)
}

// neighbours has edges within pairs of shards, which are ways, and between the two shards
// that are next to each other.
func neighbours(from, to int) bool {
	return from/2 == to/2 || from*to == 2
}

// fans has edges within ways, and from the first shard of each way to the other way.
func fans(from, to int) bool { return from/2 == to/2 || from%2 == 0 }

// two is a job of two ways of two shards; what nodes send each other takes a while. Each
// way has so many grains that see something of the other way, and two that do not.
func two(t *testing.T, may func(from, to int) bool, see int, h Halo, delay time.Duration, apart bool) *job {
	s := newSetup(deep("gcn", 3), 1, 2, 2)
	s.Halo, s.apart, s.Recompute, s.rate = h, apart, false, 0.1
	s.device = func() tensor.Device { return slow{reference.New()} }
	j := newWorld(t, 1, []int{12, 12, 12, 12}, may).start(t, s)
	for _, n := range j.nodes {
		if way := n.ways[0]; way.inner[0] != 2 || len(way.grains) != 2+see {
			t.Fatalf("a way has %d grains, %d of which wait for nobody", len(way.grains), way.inner[0])
		}
	}
	j.net.Delay = delay
	return j
}

// atEnd is how often an epoch waits at its end: for pieces of gradients, for what they add
// up to, and for losses.
const atEnd = 3

// What ways send each other is on its way while those grains are computed that do not see
// it, forward and backward: nobody waits, where that takes as long.
func TestHalosAreHidden(t *testing.T) {
	const layers = 2 // that see rows which were computed
	for _, c := range []struct {
		halo  Halo
		delay time.Duration
		apart bool
		waits time.Duration // of each of four epochs, without sums
	}{
		{Halo{Policy: Exact}, 2 * time.Second, false, 0},
		{Halo{Policy: Exact}, 3 * time.Second, false, 2 * layers * time.Second},
		{Halo{Policy: Exact}, 2 * time.Second, true, 2 * layers * 2 * time.Second},
		{Halo{Policy: Sampled, Share: 0.9}, 2 * time.Second, false, 0},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := two(t, neighbours, 1, c.halo, c.delay, c.apart)
				for epoch := 1; epoch < 5; epoch++ {
					j.epoch(t, epoch)
					for i, n := range j.nodes {
						if got, want := n.Waited(), c.waits+atEnd*c.delay; got != want {
							t.Errorf("epoch %d: node %d waits for %v, want %v", epoch, i, got, want)
						}
					}
				}
			})
		})
	}
}

// Rows of one shard are on their way while the next is computed.
func TestHalosAreHiddenBehindOtherShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 3 * time.Second
		j := two(t, fans, 2, Halo{Policy: Exact}, delay, false)
		for epoch := 1; epoch < 4; epoch++ {
			j.epoch(t, epoch)
			for i, n := range j.nodes {
				// Forward, two grains of the layer are computed meanwhile and, but for the
				// first, whose shards are whole, one of that before; backward, two.
				if got, want := n.Waited(), 3*time.Second+atEnd*delay; got != want {
					t.Errorf("epoch %d: node %d waits for %v, want %v", epoch, i, got, want)
				}
			}
		}
	})
}

// Rows of the last epoch, and gradients, are brought while all else is computed: what takes
// too long to be hidden behind the grains that do not see it is waited for no more. It is as
// many bytes.
func TestRowsOfTheLastEpochAreBroughtAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 4 * time.Second
		j := two(t, neighbours, 1, Halo{Policy: Previous}, delay, false)
		bytes := uint64(0)
		for epoch := 1; epoch < Fresh+3; epoch++ {
			j.epoch(t, epoch)
			fresh := (epoch-1)%Fresh == 0
			for i, n := range j.nodes {
				want := atEnd * delay
				if fresh {
					want += 2 * 2 * 2 * time.Second
				}
				if got := n.Waited(); got != want {
					t.Errorf("epoch %d: node %d waits for %v, want %v", epoch, i, got, want)
				}
			}
			n := j.nodes[0]
			got := n.payload(peer.Activation)
			if n.tally.Reset(); epoch > 1 && got != bytes || got == 0 {
				t.Errorf("epoch %d takes %d bytes, and the first %d", epoch, got, bytes)
			}
			bytes = got
		}
	})
}

// What stages send each other is on its way while they compute: an epoch takes as long as
// its turns, and what is sent first takes, once forward and once backward for each stage.
func TestBoundariesAreHidden(t *testing.T) {
	const positions, stages, delay = 6, 3, 700 * time.Millisecond
	for _, apart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, sizes, anywhere)
			s := newSetup(deep("gcnii", 3), stages, 1, positions)
			s.apart = apart
			j := w.start(t, s)
			j.epoch(t, 1) // and a history
			j.net.Delay = delay
			begin, end := time.Now(), time.Time{}
			for _, n := range j.nodes {
				n.trace = func(e event, place int) {
					time.Sleep(time.Second)
					if n.stage == 0 && e == backwardDone && place == 0 {
						end = time.Now()
					}
				}
			}
			j.epoch(t, 2)
			turns := 2 * (positions + stages - 1) * time.Second
			got, hidden := end.Sub(begin), turns+2*(stages-1)*delay
			if !apart && got != hidden || apart && got < hidden+2*(positions-1)*delay {
				t.Errorf("apart %v: the last stage is back after %v, and turns and first rows take %v", apart, got, hidden)
			}
		})
	}
}

// Rows are given when the shards of their piece are done, and not later; pieces are all
// rows that another way mirrors, in runs of shards.
func TestPiecesAreGivenSoon(t *testing.T) {
	w := newWorld(t, 3, []int{9, 7, 8, 6, 9, 8}, anywhere)
	s := newSetup(deep("gcn", 3), 1, 2, 2)
	s.nodes = 1
	n := w.start(t, s).nodes[0]
	several := 0
	for _, c := range n.halo.parcels[0] {
		next := 0
		for _, q := range c.pieces[forwards] {
			if q.begin != next || q.end <= q.begin {
				t.Errorf("a piece has the rows %d to %d, and those before end at %d", q.begin, q.end, next)
			}
			next = q.end
			if q.begin > 0 {
				several++
			}
			last := -1
			for _, v := range c.ids[q.begin:q.end] {
				for i, g := range c.from.grains {
					for _, have := range g.vertices {
						if have == v {
							last = max(last, i)
						}
					}
				}
			}
			for i, g := range c.from.grains {
				for _, given := range g.gives {
					if given == q && i != last {
						t.Errorf("a piece is given after grain %d, and whole after grain %d", i, last)
					}
				}
			}
		}
		if next != len(c.ids) {
			t.Errorf("pieces have %d of %d rows", next, len(c.ids))
		}
	}
	if several < 2 {
		t.Error("all is given at once")
	}
}
