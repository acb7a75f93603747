package gather

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// TestKeep: a row that has come is never asked for again, if it is one of those that are kept; all
// rows are as they were.
func TestKeep(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, k := range kinds {
		shards := graphOf(k, 70, 0, 40, 30, 60)
		edges := withEdges(shards, rng)
		m := meshOf(t, shards, 4, []int{0, 0, 1, 2, 1}, "row", "")
		for _, most := range []uint64{1 << 30, 9000, 700, 0} {
			for node := range 4 { // the last has no shard: all its rows are of others
				s := m.sources[node]
				rows, of, bytes, err := s.Keep(t.Context(), most, shards, &peer.Tally{})
				if err != nil {
					t.Fatal(err)
				}
				far := m.hottest(node, 1<<20, edges)
				if of != len(far) || rows > of || most == 1<<30 && rows != of && !s.form.Sparse() || most == 0 && rows != 0 || !s.form.Sparse() && bytes > most {
					t.Fatalf("%v, node %d: %d of %d rows are kept in %d bytes of %d", k, node, rows, of, bytes, most)
				}
				if s.form.Sparse() {
					continue // these came at once: see TestCache
				}
				chosen := m.hottest(node, rows, edges)
				var kept []uint32
				var r Rows
				for _, o := range options {
					sets := [][]uint32{m.some(rng, 90), m.some(rng, 50), nil}
					for range 2 {
						m.checkCached(t, node, &r, sets, kept, o)
						for _, v := range slices.Concat(sets...) {
							if _, is := slices.BinarySearch(chosen, v); is && !slices.Contains(kept, v) {
								kept = append(kept, v)
							}
						}
					}
				}
				s.Drop()
				if s.Kept() != nil {
					t.Error("rows that were given up are kept")
				}
			}
		}
	}
}

// Several goroutines gather, and keep the same rows.
func TestKeepTogether(t *testing.T) {
	shards := graphOf(kinds[0], 200, 300)
	m := meshOf(t, shards, 2, []int{0, 1}, "none", "")
	s := m.sources[0]
	rows, of, _, err := s.Keep(t.Context(), 1<<30, shards, nil)
	if err != nil || rows != of || of != 300 {
		t.Fatal(rows, of, err)
	}
	var all sync.WaitGroup
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(uint64(worker), 1))
		all.Go(func() {
			var r Rows
			for range 50 {
				sets := [][]uint32{m.some(rng, 120), m.some(rng, 60)}
				m.gather(0, &r, sets, Options{}, nil)
				m.checkRows(t, 0, &r, sets)
			}
			if r.Remote > 0 {
				t.Errorf("%d rows came again", r.Remote)
			}
		})
	}
	all.Wait()
	s.Drop()
}

// TestComplete: once half of the rows that are kept have come, the others come together, and none
// is asked for any more. Where not all are kept, it is the same with those that are.
func TestComplete(t *testing.T) {
	shards := graphOf(kinds[0], 200, 300)
	rng := rand.New(rand.NewPCG(3, 3))
	edges := withEdges(shards, rng)
	for _, most := range []uint64{1 << 30, 6000} {
		m := meshOf(t, shards, 2, []int{0, 1}, "none", "")
		s := m.sources[0]
		kept, of, _, err := s.Keep(t.Context(), most, shards, nil)
		if err != nil || kept == 0 || (most == 1<<30) != (kept == of) {
			t.Fatal(kept, of, err)
		}
		chosen := m.hottest(0, kept, edges)
		var r Rows
		var tally peer.Tally
		brought := 0
		for i, v := range chosen {
			rows, err := s.Complete(t.Context(), 0, &tally)
			if err != nil {
				t.Fatal(err)
			}
			if brought += rows; rows > 0 {
				if 2*i < kept || rows != kept-i {
					t.Errorf("%d rows came when %d of %d had", rows, i, kept)
				}
				break
			}
			m.gather(0, &r, [][]uint32{{v}}, Options{}, nil)
		}
		if brought == 0 || tally.Read().Bytes[peer.Feature] == 0 {
			t.Errorf("%d rows came, and %v was counted", brought, tally.Read())
		}
		m.gather(0, &r, [][]uint32{chosen}, Options{}, nil)
		m.checkRows(t, 0, &r, [][]uint32{chosen})
		if r.Remote > 0 {
			t.Errorf("%d rows came again", r.Remote)
		}
		if rows, err := s.Complete(t.Context(), 0, &tally); rows > 0 || err != nil {
			t.Errorf("%d rows came once more, %v", rows, err)
		}
	}
}

// TestAllOwnersAreAskedEachTime: the last rows come some at a time, and each time some of every owner.
func TestAllOwnersAreAskedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meshOf(t, graphOf(kinds[0], 10, 20, 20, 20), 4, []int{0, 1, 2, 3}, "none", "")
		s := m.sources[0]
		if _, _, _, err := s.Keep(t.Context(), 1<<30, m.shards, nil); err != nil {
			t.Fatal(err)
		}
		missing := make([]uint32, 60)
		for i := range missing {
			missing[i] = 10 + uint32(i)
		}
		m.net.Delay = 50 * time.Millisecond
		var tally peer.Tally
		begun := time.Now()
		rows, err := s.complete(t.Context(), missing, 15, &tally)
		if took := time.Since(begun); err != nil || rows != 60 || took != 200*time.Millisecond {
			t.Errorf("%d rows came in %v, %v", rows, took, err)
		}
		if got := tally.Read().Requests[peer.Feature]; got != 4*3 {
			t.Errorf("there were %d questions in place of one to each of three owners, four times", got)
		}
		m.net.Delay = 0
		var r Rows
		m.gather(0, &r, [][]uint32{missing}, Options{}, nil)
		m.checkRows(t, 0, &r, [][]uint32{missing})
		if r.Remote > 0 {
			t.Errorf("%d rows came again", r.Remote)
		}
	})
}

// TestCompleteAhead: rows come together before half have where the epochs that are left would read a
// third of them, and do not where epochs read the same ones again and again.
func TestCompleteAhead(t *testing.T) {
	shards := graphOf(kinds[0], 200, 300)
	for _, again := range []bool{false, true} {
		m := meshOf(t, shards, 2, []int{0, 1}, "none", "")
		s := m.sources[0]
		of, _, _, err := s.Keep(t.Context(), 1<<30, shards, nil)
		if err != nil {
			t.Fatal(err)
		}
		chosen := m.hottest(0, of, withEdges(shards, rand.New(rand.NewPCG(3, 3))))
		var r Rows
		var tally peer.Tally
		if rows, err := s.Complete(t.Context(), 10, &tally); rows > 0 || err != nil {
			t.Fatalf("%d rows came before the first epoch, %v", rows, err)
		}
		first, second := chosen[:of/10], chosen[of/10:of/5]
		if again {
			second = first
		}
		m.gather(0, &r, [][]uint32{first}, Options{}, nil)
		m.gather(0, &r, [][]uint32{second}, Options{}, nil)
		if rows, err := s.Complete(t.Context(), 1, &tally); rows > 0 || err != nil {
			t.Errorf("%d rows came for an epoch, which reads few, %v", rows, err)
		}
		rows, err := s.Complete(t.Context(), 4, &tally) // each reads a tenth, and eight are lacking
		if err != nil {
			t.Fatal(err)
		}
		if want := of - of/5; !again && rows != want || again && rows > 0 {
			t.Errorf("%d rows came for four epochs, of %d that are lacking; the same were read again: %v", rows, want, again)
		}
	}
}
