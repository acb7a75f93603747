package pipe

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// A processor does one thing at a time.
type processor chan struct{}

func (p processor) take(long time.Duration) {
	p <- struct{}{}
	time.Sleep(long)
	<-p
}

// slowly are features that take a while of a processor.
type slowly struct {
	Features
	processor processor
}

func (s slowly) Input(place, grain int, vertices []uint32) (nn.Input, error) {
	s.processor.take(time.Millisecond)
	return s.Features.Input(place, grain, vertices)
}

// What pieces cost is what they keep from computing: nothing, where they take nothing but
// time on the way.
func TestPiecesKeepFromComputing(t *testing.T) {
	const ofByte, ofPiece = 2 * time.Nanosecond, 200 * time.Microsecond
	for name, busy := range map[string]bool{"the processor sends": true, "something else does": false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5, sizes, anywhere)
			const nodes = 3
			j := w.start(t, newSetup(deep("gcn", 3), nodes, 1, 6))
			processors := make([]processor, nodes)
			for i, n := range j.nodes {
				processors[i] = make(processor, 1)
				n.Features = slowly{n.Features, processors[i]}
			}
			j.net.Carry = func(to, bytes int) {
				if bytes == 0 {
					return // by which nodes wait for each other
				}
				const ends = 2 // each gives as much as it takes
				long := ends * (ofPiece + time.Duration(bytes)*ofByte)
				if busy {
					processors[to].take(long)
					return
				}
				time.Sleep(long)
			}
			all := make([]*Timing, nodes)
			err := j.each(func(n *node) (err error) {
				i := slices.Index(j.nodes, n)
				all[i], err = Rehearse(t.Context(), *n.Task, w.firsts, []int{i, nodes + i}[:min(2, nodes-1-i)]) // the last has none
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			perByte, perPiece := handling(all)
			if !busy && (perByte > ofByte.Seconds()/10 || perPiece > ofPiece.Seconds()/10) {
				t.Errorf("%s: a byte costs %v s, and a piece %v s", name, perByte, perPiece)
			}
			if busy && (math.Abs(perByte/ofByte.Seconds()-1) > 0.15 || math.Abs(perPiece/ofPiece.Seconds()-1) > 0.15) {
				t.Errorf("%s: a byte costs %v s, and a piece %v s", name, perByte, perPiece)
			}
		})
	}
}

// What is found is never less than nothing, whatever else machines did meanwhile.
func TestCostsOfPieces(t *testing.T) {
	of := func(large, small float64) *Timing {
		return &Timing{Shards: []uint32{1}, Rest: rest{Burden: burden{large, small}}}
	}
	const k = 1 << 10
	for _, c := range []struct {
		all               []*Timing
		perByte, perPiece float64
	}{
		{[]*Timing{of(256*k+9, 16*k+9), {Rest: rest{Burden: burden{9, 9}}}}, 1, 9}, // one has computed nothing
		{[]*Timing{of(256*k+9, 16*k+9), of(256*k-9, 16*k-9)}, 1, 0},
		{[]*Timing{of(7, 9)}, 0, 7},
		{[]*Timing{of(256*k, -9)}, 1, 0},
		{[]*Timing{of(-1, -9)}, 0, 0},
		{[]*Timing{{}}, 0, 0},
	} {
		if perByte, perPiece := handling(c.all); math.Abs(perByte-c.perByte) > 1e-9 || math.Abs(perPiece-c.perPiece) > 1e-3 {
			t.Errorf("a byte costs %v, and a piece %v, want %v and %v", perByte, perPiece, c.perByte, c.perPiece)
		}
	}
}
