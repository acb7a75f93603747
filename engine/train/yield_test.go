package train_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Rows that are kept are given up once others need the memory, and nothing else changes. Rows of
// which somebody has asked for a number stay.
func TestKeptRowsGiveWay(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	run := func(cache string, short bool) (history []trained.Epoch) {
		synctest.Test(t, func(t *testing.T) {
			r := traintest.Small("sage")
			r.Epochs, r.EvalEvery = 6, 2
			r.Sharing = strategy.Given("leap", "leap.cache="+cache)
			r.Sharing.Deterministic = true
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
				if q.Service == peer.Offers {
					<-time.After(200 * time.Millisecond) // an epoch takes a second or two
				}
				return nil
			}
			var free atomic.Uint64
			free.Store(1 << 30)
			all := m.Start(t, r, shards, train.Options{Threads: 1})
			for node, l := range all {
				l.Run.Options.Measure = func() budget.Memory {
					return budget.Memory{Machine: uint64(node + 1), Process: 1, Free: free.Load()}
				}
			}
			all[0].Run.Options.Report = func(e trained.Epoch) {
				if e.Epoch == 3 && short {
					free.Store(100)
				}
			}
			if err := m.Each(func(node int) error { return all[node].Run.Train(t.Context()) }); err != nil {
				t.Fatal(err)
			}
			for node, l := range all {
				if kept := l.Run.Sharing.Cached > 0; kept != (cache != "off" && (!short || cache != "auto")) {
					t.Errorf("cache %s, short %v: at last node %d keeps %d bytes", cache, short, node, l.Run.Sharing.Cached)
				}
			}
			history = all[0].History
		})
		return history
	}
	want := run("off", false)
	for cache, short := range map[string]bool{"auto": true, "50": true} {
		for i, e := range run(cache, short) {
			if e.Hash != want[i].Hash || (e.Rows.Kept > 0) != (cache != "auto" || e.Epoch < 5) && e.Epoch != 4 {
				t.Errorf("cache %s, epoch %d: %s in place of %s, with %d rows kept", cache, e.Epoch, e.Hash, want[i].Hash, e.Rows.Kept)
			}
		}
	}
	if all := run("auto", false); all[5].Rows.Kept == 0 {
		t.Error("rows are given up though there is memory")
	}
}
