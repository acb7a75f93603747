package tables

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/session"
)

// two returns the sessions of two nodes that have a shard each.
func two(t *testing.T) (all [2]*session.Session) {
	t.Helper()
	net := loopback.New(2)
	for node := range all {
		held := make([]*graph.Shard, 2)
		held[node] = new(graph.Shard)
		s, err := session.New(net.Node(node), peer.Work{Nodes: []string{"a", "b"}, Owners: []int{0, 1}, Self: node}, held)
		if err != nil {
			t.Fatal(err)
		}
		net.Node(node).Open()
		all[node] = s
	}
	return all
}

// A node whose program is of another version says first what memory it needs. Both learn of each other, in
// place of waiting for what never comes.
func TestVersionsAreSeenBeforeRowsArePlaced(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	all := two(t)
	var running sync.WaitGroup
	var old [][]byte
	var wrong error
	running.Go(func() {
		message := append(binary.LittleEndian.AppendUint32(nil, session.Wire-1), make([]byte, 100)...)
		old, wrong = all[1].Exchange.Gather(ctx, exchange.Tag{Lane: exchange.LaneMessages, Index: 1}, message, nil)
	})
	r := recipe.Recipe{Embeddings: 8}
	err := new(Placement).Decide(ctx, all[0], &r, false, func() uint64 { return 1 }, 2)
	running.Wait()
	if _, agreed := errors.AsType[*session.Agreed](err); !agreed || !strings.Contains(err.Error(), "node b speaks of training in another version") {
		t.Errorf("here it is %v", err)
	}
	if wrong != nil || binary.LittleEndian.Uint32(old[0]) != session.Wire {
		t.Errorf("there it is %v, %v", old, wrong)
	}
}

// Nodes decide alike, and then say what memory they need in a message of its own.
func TestNodesPlaceRowsAlike(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for at, want := range map[string]struct{ apart, said bool }{"": {true, true}, recipe.AtOwners: {true, false}, recipe.AtAll: {false, false}} {
		var running sync.WaitGroup
		var placed [2]Placement
		var errs [2]error
		for node, s := range two(t) {
			running.Go(func() {
				r := recipe.Recipe{Embeddings: 8, EmbeddingsAt: at}
				errs[node] = placed[node].Decide(ctx, s, &r, false, func() uint64 { return 1 << 40 * uint64(node) }, 1<<40) // it fits one of them
			})
		}
		running.Wait()
		for node := range placed {
			if p := &placed[node]; errs[node] != nil || p.Apart != want.apart || p.Room() == later != want.said {
				t.Errorf("%q: node %d has %+v, %v", at, node, p, errs[node])
			}
		}
	}
}

// All nodes keep where they stand, or none does.
func TestAllKeepOrNone(t *testing.T) {
	for _, may := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		var running sync.WaitGroup
		for node, s := range two(t) {
			running.Go(func() {
				got, err := new(Placement).All(t.Context(), s, checkpoint.Place{Epoch: 1, Step: 2}, may[node])
				if err != nil || got != (may[0] && may[1]) {
					t.Errorf("%v: node %d says %v, %v", may, node, got, err)
				}
			})
		}
		running.Wait()
	}
}
