package exchange

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// work is a job on so many nodes, as one of them sees it.
func work(nodes, self int) peer.Work {
	w := peer.Work{Self: self}
	for i := range nodes {
		w.Nodes = append(w.Nodes, string(rune('a'+i)))
	}
	return w
}

// mesh is the exchanges of nodes that answer.
func mesh(nodes int) (*loopback.Net, []*Exchange) {
	net := loopback.New(nodes)
	var all []*Exchange
	for i := range nodes {
		all = append(all, New(net.Node(i), work(nodes, i)))
	}
	for i := range nodes {
		net.Node(i).Open()
	}
	return net, all
}

// each runs something on all nodes at once, and waits for it.
func each(all []*Exchange, do func(node int, x *Exchange) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, x := range all {
		wg.Go(func() { errs[i] = do(i, x) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A desk is Peers that keep the handler, so that a test is who asks.
type desk struct {
	handler peer.Handler
}

func (d *desk) Ask(context.Context, int, peer.Query, []byte) ([]byte, error) {
	return nil, errors.New("nobody is there")
}
func (d *desk) Answer(_ peer.Service, h peer.Handler) { d.handler = h }
func (d *desk) Open()                                 {}

// question is one for an offer.
func question(t Tag, limit int) peer.Query {
	return peer.Query{Service: peer.Offers, Epoch: t.Epoch, Step: t.Step, Part: t.part(), Limit: limit}
}
