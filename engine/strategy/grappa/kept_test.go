package grappa_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Rows of other nodes come once in all sweeps, and what is learnt has the same bits.
func TestRowsOfEarlierSweepsAreKept(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, c := range [][]string{{"period=1", "swept=2"}, {"period=1", "swept=2", "prefetch=off"}, {"period=1", "swept=2", "loader=halo-sampled", "cap=60"}} {
		run := func(files bool, set ...string) []trained.Epoch {
			r := traintest.Small("sage")
			r.Epochs, r.EvalEvery = 12, 3
			r.Sharing = apart(append(c, set...)...)
			r.Sharing.Deterministic = true
			dir := func(int) string { return "" }
			if files {
				dir = func(int) string { return t.TempDir() }
			}
			_, reports, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, isolation(train.Options{Threads: 1}), dir)
			if err != nil {
				t.Fatal(err)
			}
			return reports[0]
		}
		off := run(false, "cache=off")
		for name, kept := range map[string][]trained.Epoch{"in memory": run(false), "in files": run(true), "a number": run(false, "cache=300")} {
			saved, without, rows := uint64(0), uint64(0), uint64(0)
			for i, k := range kept {
				if o := off[i]; k.Hash != o.Hash || o.Rows.Kept > 0 || k.Rows.Local != o.Rows.Local || k.Rows.Remote > 0 || k.Sent.Bytes[peer.Shard] > o.Sent.Bytes[peer.Shard] {
					t.Errorf("%v, %s, epoch %d: %+v and %d bytes, and %+v and %d bytes with none kept", c, name, i+1, k.Rows, k.Sent.Bytes[peer.Shard], o.Rows, o.Sent.Bytes[peer.Shard])
				}
				if i >= 8 {
					saved, without, rows = saved+k.Sent.Bytes[peer.Shard], without+off[i].Sent.Bytes[peer.Shard], rows+k.Rows.Kept
				}
			}
			t.Logf("%v, %s: later switches bring %d bytes, and %d with none kept; %d rows were kept", c, name, saved, without, rows)
			if rows == 0 || saved >= without || name != "a number" && saved > 2*without/3 {
				t.Errorf("%v, %s: later switches bring %d bytes, and %d with none kept; %d rows were kept", c, name, saved, without, rows)
			}
		}
	}
}

// Rows that are kept are given up when others need the memory, even while the next view copies some.
func TestRowsOfEarlierSweepsGiveWay(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	run := func(short bool) (history []trained.Epoch) {
		synctest.Test(t, func(t *testing.T) {
			r := traintest.Small("sage")
			r.Epochs, r.EvalEvery = 12, 3
			r.Sharing = apart("period=1", "swept=2")
			r.Sharing.Deterministic = true
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
				switch {
				case q.Service == peer.Offers:
					<-time.After(200 * time.Millisecond) // an epoch takes a second or two
				case q.Kind == peer.Shard:
					<-time.After(50 * time.Millisecond)
				}
				return nil
			}
			var free atomic.Uint64
			free.Store(1 << 30)
			all := m.Start(t, r, shards, isolation(train.Options{Threads: 1}))
			for node, l := range all {
				l.Run.Options.Measure = func() budget.Memory {
					return budget.Memory{Machine: uint64(node + 1), Process: 1, Free: free.Load()}
				}
			}
			all[0].Run.Options.Report = func(e trained.Epoch) {
				if e.Epoch == 5 && short {
					free.Store(100)
				}
			}
			if err := m.Each(func(node int) error { return all[node].Run.Train(t.Context()) }); err != nil {
				t.Fatal(err)
			}
			for node, l := range all {
				if kept := l.Run.Sharing.Cached > 0; kept == short {
					t.Errorf("short %v: at last node %d keeps %d bytes", short, node, l.Run.Sharing.Cached)
				}
			}
			history = all[0].History
		})
		return history
	}
	whole, short := run(false), run(true)
	for i := range whole {
		if whole[i].Hash != short[i].Hash {
			t.Errorf("epoch %d: %s and %s", i+1, whole[i].Hash, short[i].Hash)
		}
	}
	if last := len(whole) - 1; whole[last].Rows.Kept == 0 || short[last].Rows.Kept > 0 {
		t.Errorf("%d rows were kept, and %d without memory", whole[last].Rows.Kept, short[last].Rows.Kept)
	}
}
