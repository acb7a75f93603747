package exchange

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// Of two nodes one asks the other, and each node asks about half of the others.
func TestHalfAreAsked(t *testing.T) {
	for nodes := 2; nodes < 12; nodes++ {
		for a := range nodes {
			asked := 0
			for b := range nodes {
				if a == b {
					continue
				}
				if asks(a, b, nodes) == asks(b, a, nodes) {
					t.Fatalf("%d nodes: %d and %d ask each other, or neither does", nodes, a, b)
				}
				if asks(a, b, nodes) {
					asked++
				}
			}
			if asked < (nodes-1)/2 || asked > nodes/2 {
				t.Errorf("%d nodes: node %d asks %d of them", nodes, a, asked)
			}
		}
	}
}

// sizes are columns of float32 that three nodes add up in one round and in two, of which each part
// comes with a question.
var sizes = []struct{ columns, rounds int }{{10, 1}, {60_000, 2}}

func TestSizesOfSums(t *testing.T) {
	for _, c := range sizes {
		v := VolumeOf(3, c.columns, 4, nil)
		if v.Rounds != c.rounds || v.All.Requests[peer.Gradient] != uint64(3*c.rounds) {
			t.Errorf("%d columns: %d questions in %d rounds", c.columns, v.All.Requests[peer.Gradient], v.Rounds)
		}
	}
}

// What comes with a question is used: the node that is asked does not wait until it would ask
// itself. Whoever comes last, all have the sum as many answers' times later as there are rounds.
func TestWhatComesWithAQuestionIsUsed(t *testing.T) {
	for _, c := range sizes {
		for late := range 3 {
			synctest.Test(t, func(t *testing.T) {
				net, all := mesh(3)
				net.Delay = time.Millisecond
				begun := time.Now()
				must(t, each(all, func(node int, x *Exchange) error {
					if node == late {
						<-time.After(time.Second)
					}
					to := make([]float32, c.columns)
					to[c.columns-1] = float32(node)
					_, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 1}}, [][]float32{to}, to)
					if err == nil && to[c.columns-1] != 3 {
						err = fmt.Errorf("node %d has %v", node, to[c.columns-1])
					}
					return err
				}))
				if took, want := time.Since(begun), time.Second+time.Duration(c.rounds)*time.Millisecond; took > want {
					t.Errorf("%d columns, node %d is late: it took %s in place of %s", c.columns, late, took, want)
				}
			})
		}
	}
}

// A node that is not asked for long asks, and is not counted for it.
func TestWhoIsNotAskedAsks(t *testing.T) {
	for _, c := range sizes {
		synctest.Test(t, func(t *testing.T) {
			net, all := mesh(3)
			net.Trouble = func(_ context.Context, from, _ int, _ peer.Query) error {
				if from == 0 { // its questions take long: that to node 1, in each round
					<-time.After(time.Minute)
				}
				return nil
			}
			var tally peer.Tally
			begun := time.Now()
			must(t, each(all, func(node int, x *Exchange) error {
				to := make([]float32, c.columns)
				to[0] = 1
				_, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 1}, Tally: &tally}, [][]float32{to}, to)
				took := time.Since(begun)
				if err == nil && (to[0] != 3 || node == 0 && took != time.Duration(c.rounds)*time.Minute) {
					err = fmt.Errorf("node %d has %v after %s", node, to[0], took)
				}
				// In two rounds it has node 0's sum only when that has all rows.
				if most := swapPatience + time.Duration(c.rounds-1)*time.Minute; err == nil && node == 1 && (took > most || took < swapPatience) {
					err = fmt.Errorf("node %d took %s, want up to %s", node, took, most)
				}
				return err
			}))
			if got, want := tally.Read(), VolumeOf(3, c.columns, 4, nil).All; got != want {
				t.Errorf("%d columns: counted %v, want %v", c.columns, got, want)
			}
		})
	}
}

// What has a wrong length is refused, and ends the sum of who brings it.
func TestWrongLengthsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := loopback.New(2)
		x := New(net.Node(1), work(2, 1))
		net.Node(0).Open()
		net.Node(1).Open()
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			to := []float32{7}
			_, err := Reduce(ctx, x, Round{Tag: Tag{Epoch: 1}}, [][]float32{to}, to)
			if to[0] != 7 {
				t.Errorf("the sum of a round that failed: %v", to)
			}
			ended <- err
		}()
		synctest.Wait()
		q := question(Tag{Epoch: 1, Lane: LaneReduce}, 100)
		for _, size := range []int{1, noteSize, noteSize + 3, noteSize + 5, 1000} {
			q.Body = make([]byte, columnsSize+size)
			putColumns(q.Body, 0, 4)
			err := x.answer(ctx, 0, q, func(...[]byte) error { return nil })
			if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes come with a question in place of 20", size)) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		over := errors.New("the plan has changed")
		cancel(over)
		if err := <-ended; !errors.Is(err, over) {
			t.Errorf("ended by %v", err)
		}
		q.Body = make([]byte, columnsSize+swapBytes+1)
		if err := x.answer(t.Context(), 0, q, nil); !errors.Is(err, peer.ErrRefused) {
			t.Errorf("a question with %d bytes: %v", len(q.Body), err)
		}
		q.Body = make([]byte, columnsSize+noteSize+4)
		other := q
		other.Part = Tag{Lane: LaneModel}.part()
		if err := x.answer(t.Context(), 0, other, nil); !errors.Is(err, peer.ErrRefused) {
			t.Errorf("a question that brings a model: %v", err)
		}
		// What comes too late, or comes again, is of no use, and its answer is.
		putColumns(q.Body, 0, 4)
		must(t, x.answer(t.Context(), 0, q, func(...[]byte) error { return nil }))
	})
}
