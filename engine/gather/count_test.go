package gather

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// What is counted is what is brought, and nobody is asked.
func TestCountingBringsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	m := meshOf(t, graphOf(kinds[0], 20, 0, 13, 30, 17), 4, []int{0, 1, 2, 1, 2}, "none", "")
	var asked atomic.Int64
	m.net.Trouble = func(context.Context, int, int, peer.Query) error {
		asked.Add(1)
		return nil
	}
	for node := range 4 {
		for _, o := range options {
			sets := [][]uint32{m.some(rng, 40), m.some(rng, 5), nil, m.some(rng, 60)}
			var counted, brought Rows
			if err := m.sources[node].Count(&counted, sets, o); err != nil {
				t.Fatal(err)
			}
			if asked.Load() > 0 {
				t.Fatalf("node %d, %+v: somebody was asked", node, o)
			}
			m.gather(node, &brought, sets, o, nil)
			asked.Store(0)
			got, want := []int{counted.Local, counted.Cached, counted.Remote}, []int{brought.Local, brought.Cached, brought.Remote}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("node %d, %+v: %v rows are counted, and %v brought", node, o, got, want)
			}
		}
	}
}

func TestWhatARowTakes(t *testing.T) {
	for _, k := range kinds {
		shards := graphOf(k, 300, 40, 300)
		m := meshOf(t, shards, 3, []int{0, 1, 0}, "row", "")
		if got := m.sources[2].RowBytes(); got != 0 {
			t.Errorf("%+v: without rows they take %g bytes", k, got)
		}
		form := m.sources[1].form
		if !form.Sparse() {
			if got := m.sources[1].RowBytes(); got != float64(form.RowBytes()) {
				t.Errorf("%+v: %g bytes, not %d", k, got, form.RowBytes())
			}
			continue
		}
		bytes := 0
		for v := range uint32(40) {
			bytes += len(m.stores[1].Append(nil, form, 300+v))
		}
		if got := m.sources[1].RowBytes(); got != float64(bytes)/40 {
			t.Errorf("%+v: %g bytes, not %d of 40 rows", k, got, bytes)
		}
	}
}
