package build

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/build/shardtable"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// seen runs a source up to what the partitioners see.
func seen(t *testing.T, s shape, change func(*plan)) *blocks {
	t.Helper()
	m := s.source(1)
	o, err := Options{Partitioner: stream, Dir: t.TempDir()}.settle(m)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := newPlan(m, o)
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	b := &builder{options: o, src: m, meta: m.meta, plan: p, report: &reporter{}}
	if b.spool, err = b.scratch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.spool.close)
	to, err := b.scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.close)
	h, err := b.spread(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.sortHalves(t.Context(), h, to)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestBlocksDependOnTheGraphAlone sorts in different memories and expects the same
// blocks, begun and ended at the same vertices.
func TestBlocksDependOnTheGraphAlone(t *testing.T) {
	s := shape{vertices: 3*blockRows + 5, edges: 100_000}
	var first []string
	for _, records := range []int{1 << 20, 5000, 900} {
		g := seen(t, s, func(p *plan) { p.records, p.blockShift, p.chunk = records, 10, 32 })
		var all []string
		halves := uint64(0)
		err := g.Blocks(t.Context(), func(b partition.Block) error {
			h := fnv.New64()
			fmt.Fprint(h, b.Indptr, b.Indices, b.Weights)
			all = append(all, fmt.Sprint(b.First, len(b.Indptr)-1, h.Sum64()))
			halves += uint64(len(b.Indices))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = all
		}
		if len(all) != 4 || !slices.Equal(all, first) || halves != g.HalfEdges() {
			t.Errorf("with %d records in memory there are other blocks: %v and %v", records, all, first)
		}
	}
}

// TestTheGraphThatPartitionersSee compares it with the edges, written down simply.
func TestTheGraphThatPartitionersSee(t *testing.T) {
	s := shape{vertices: 300, edges: 3000}
	g := seen(t, s, func(p *plan) { p.blockShift, p.records, p.chunk = 5, 700, 16 })
	m := s.source(1)
	neighbours := make([]map[uint32]bool, s.vertices)
	stored := make([]map[uint32]bool, s.vertices)
	for v := range neighbours {
		neighbours[v], stored[v] = map[uint32]bool{}, map[uint32]bool{}
	}
	for i, src := range m.edges.Src {
		dst := m.edges.Dst[i]
		stored[dst][src] = true
		if src != dst {
			neighbours[src][dst], neighbours[dst][src] = true, true
		}
	}
	whole, err := g.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for v := range s.vertices {
		row := whole.Indices[whole.Indptr[v]:whole.Indptr[v+1]]
		if len(row) != len(neighbours[v]) || !slices.IsSorted(row) {
			t.Fatalf("vertex %d has the neighbours %v, not %v", v, row, neighbours[v])
		}
		for _, u := range row {
			if !neighbours[v][u] {
				t.Errorf("vertex %d has the neighbour %d", v, u)
			}
		}
		if w := whole.Weights[2*v : 2*v+2]; w[0] != 1 || int(w[1]) != len(stored[v]) {
			t.Errorf("vertex %d weighs %v, and %d edges are stored at it", v, w, len(stored[v]))
		}
	}
}

func TestBlocksEndEarly(t *testing.T) {
	g := seen(t, shape{vertices: 3 * blockRows, edges: 1000}, func(*plan) {})
	mine := errors.New("enough")
	if err := g.Blocks(t.Context(), func(partition.Block) error { return mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := g.Blocks(ctx, func(partition.Block) error { cancel(); return nil })
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := g.Blocks(ctx, func(partition.Block) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAShardIsFoundByItsIDs(t *testing.T) {
	for _, first := range [][]uint32{
		{0, 1},
		{0, 0, 3, 3, 3, 7, 7},
		{0, 5, 100_000, 100_000, 100_001, 300_000},
		{0, 1 << 30, 1<<31 - 1},
	} {
		table := shardtable.New(first)
		for shard := range len(first) - 1 {
			for _, id := range []uint32{first[shard], (first[shard] + first[shard+1]) / 2, first[shard+1] - 1} {
				if first[shard] < first[shard+1] && table.Shard(id) != shard {
					t.Errorf("id %d is in shard %d of %v, not %d", id, table.Shard(id), first, shard)
				}
			}
		}
	}
}

func TestAPartitionerIsNotTrusted(t *testing.T) {
	for want, part := range map[string][]uint16{
		"the partitioner placed 2 of 3 vertices":           {0, 1},
		"the partitioner put vertex 1 into shard 2 of 2":   {0, 2, 1},
		"the partitioner put vertex 0 into shard 65535 of": {65535, 0, 0},
	} {
		if _, err := newNumbering(part, 3, 2); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}
