package exchange

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// A doubting node asks each question twice more, as over connections that break: once
// before, and once beside, whose answer may come when the step is long over.
type doubting struct {
	*loopback.Node
	beside *sync.WaitGroup
}

func (d doubting) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	again := q
	again.Tally, again.Body = nil, append([]byte(nil), q.Body...)
	d.beside.Go(func() {
		// Refused or not, it is of no use to anybody.
		_, _ = d.Node.Ask(ctx, node, again, nil)
	})
	if _, err := d.Node.Ask(ctx, node, again, nil); err != nil {
		return nil, err
	}
	return d.Node.Ask(ctx, node, q, buf)
}

// Nobody writes to what is still being read for a question that was asked again: the
// race detector sees it.
func TestQuestionsAreAskedAgain(t *testing.T) {
	const nodes, columns, steps = 3, 200, 100
	var beside sync.WaitGroup
	net := loopback.New(nodes)
	var all []*Exchange
	for i := range nodes {
		all = append(all, New(doubting{net.Node(i), &beside}, work(nodes, i)))
	}
	for i := range nodes {
		net.Node(i).Open()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	must(t, each(all, func(node int, x *Exchange) (err error) {
		defer func() {
			if err != nil {
				cancel() // the others wait for this node
			}
		}()
		row := make([]float32, columns)
		for step := range uint32(steps) {
			for i := range row {
				row[i] = float32(node) + float32(step)
			}
			if _, err := Reduce(ctx, x, Round{Tag: Tag{Epoch: 1, Step: step}}, [][]float32{row}, row); err != nil {
				return err
			}
			for i := range row {
				if row[i] != 3+3*float32(step) {
					return fmt.Errorf("node %d, step %d: column %d is %v", node, step, i, row[i])
				}
			}
			message := fmt.Append(nil, node, step)
			got, err := x.Gather(ctx, Tag{Epoch: 1, Step: step}, message, nil)
			if err != nil {
				return err
			}
			for i := range got {
				if want := fmt.Sprint(i, step); string(got[i]) != want {
					return fmt.Errorf("node %d, step %d: node %d says %q, want %q", node, step, i, got[i], want)
				}
			}
		}
		return nil
	}))
	beside.Wait()
}
