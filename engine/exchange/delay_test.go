package exchange

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// All nodes are asked at once: a sum takes two answers' time, or one where it is small, and a
// message one.
func TestHowLongItTakes(t *testing.T) {
	for _, nodes := range []int{2, 5} {
		synctest.Test(t, func(t *testing.T) {
			net, all := mesh(nodes)
			net.Delay = 50 * time.Millisecond
			holders := make([]int, 16)
			for i := range holders {
				holders[i] = i * 7 % nodes
			}
			spans := Spans(holders, nodes)
			row := func(epoch uint32, columns int) func(int, *Exchange) error {
				return func(_ int, x *Exchange) error {
					to := make([]float32, columns)
					_, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: epoch}}, [][]float32{to}, to)
					return err
				}
			}
			tree := func(epoch uint32, columns int) func(int, *Exchange) error {
				return func(node int, x *Exchange) error {
					mine := make([][]float32, len(spans[node]))
					for i := range mine {
						mine[i] = make([]float32, columns)
					}
					_, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: epoch}, Spans: spans}, mine, make([]float32, columns))
					return err
				}
			}
			for _, c := range []struct {
				name string
				want time.Duration
				do   func(node int, x *Exchange) error
			}{
				{"reduce", 50 * time.Millisecond, row(1, 1000)},
				{"reduce of much", 100 * time.Millisecond, row(2, 1<<18)},
				{"reduce by the tree", 50 * time.Millisecond, tree(3, 100)},
				{"reduce of much by the tree", 100 * time.Millisecond, tree(4, 1<<18)},
				{"reduce of nothing by the tree", 50 * time.Millisecond, tree(5, 0)},
				{"gather", 50 * time.Millisecond, func(_ int, x *Exchange) error {
					_, err := x.Gather(t.Context(), Tag{Epoch: 1}, []byte("done"), nil)
					return err
				}},
			} {
				begun := time.Now()
				must(t, each(all, c.do))
				if took := time.Since(begun); took != c.want {
					t.Errorf("%d nodes: %s takes %s, want %s", nodes, c.name, took, c.want)
				}
			}
		})
	}
}

// A node that is cut off in the midst of a step, at any of its questions, leaves no
// other waiting once the plan has changed.
func TestANodeIsLostInAStep(t *testing.T) {
	for i, after := range []time.Duration{0, 30 * time.Millisecond, 60 * time.Millisecond, 90 * time.Millisecond, 0, 30 * time.Millisecond} {
		columns := 1 << 16
		if i >= 4 {
			columns = 100 // in one round
		}
		synctest.Test(t, func(t *testing.T) {
			net, all := mesh(3)
			net.Delay = 50 * time.Millisecond
			changed := errors.New("the plan has changed")
			live, change := context.WithCancelCause(t.Context())
			dead, kill := context.WithCancel(t.Context())
			time.AfterFunc(after, kill)
			time.AfterFunc(time.Second, func() { change(changed) })
			err := each(all, func(node int, x *Exchange) error {
				ctx := live
				if node == 1 {
					ctx = dead
				}
				for step := range uint32(100) {
					to := make([]float32, columns)
					if _, err := Reduce(ctx, x, Round{Tag: Tag{Epoch: 1, Step: step}}, [][]float32{to}, to); err != nil {
						if node != 1 && !errors.Is(err, changed) {
							return fmt.Errorf("node %d ends by %w", node, err)
						}
						return nil
					}
				}
				return fmt.Errorf("node %d has not noticed", node)
			})
			must(t, err)
		})
	}
}
