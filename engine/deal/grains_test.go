package deal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// layout is a graph of some shards, among them ones without vertices.
func layout(r *rand.Rand, shards, nodes int) peer.Layout {
	l := peer.Layout{Nodes: nodes, Firsts: []uint32{0}}
	for range shards {
		l.Owners = append(l.Owners, r.IntN(nodes))
		l.Firsts = append(l.Firsts, l.Firsts[len(l.Firsts)-1]+uint32(r.IntN(4)*r.IntN(10)))
	}
	l.Firsts[shards]++
	return l
}

func TestShardsOfVertices(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		l := layout(r, 1+r.IntN(20), 3)
		for shard := range l.Owners {
			for v := l.Firsts[shard]; v < l.Firsts[shard+1]; v++ {
				if l.Shard(v) != shard || l.Owner(v) != l.Owners[shard] {
					t.Fatalf("shards from %v on: vertex %d is in %d", l.Firsts, v, l.Shard(v))
				}
			}
		}
	}
}

func TestGrains(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var g Grains
	for range 500 {
		l := layout(r, 1+r.IntN(20), 3)
		var batch []uint32
		for v := range l.Vertices() {
			if r.IntN(3) > 0 {
				batch = append(batch, v)
			}
		}
		r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		g.Cut(&l, batch)
		runs := 1 + r.IntN(7)
		loads, most, last := make([]int, runs), 0, 0
		for shard := range l.Owners {
			want := slices.DeleteFunc(slices.Clone(batch), func(v uint32) bool { return l.Shard(v) != shard })
			if got := g.Of(shard); !slices.Equal(got, want) {
				t.Fatalf("shard %d has %v, want %v", shard, got, want)
			}
			if len(want) == 0 {
				continue
			}
			run := g.Run(shard, runs)
			if run < last || run >= runs {
				t.Fatalf("run %d of %d after run %d", run, runs, last)
			}
			last = run
			loads[run] += len(want)
			most = max(most, len(want))
		}
		for _, load := range loads {
			if load*runs > len(batch)+most*runs {
				t.Fatalf("runs of %v roots, with grains of up to %d", loads, most)
			}
		}
	}
}

// A grain goes where its middle is.
func TestRunsAreEven(t *testing.T) {
	for name, c := range map[string]struct{ sizes, want []int }{
		"a small one first": {[]int{2, 10}, []int{0, 1}},
		"a small one last":  {[]int{10, 2}, []int{0, 1}},
		"equal ones":        {[]int{5, 5, 5, 5}, []int{0, 0, 1, 1}},
		"one":               {[]int{9}, []int{1}},
	} {
		l, batch := peer.Layout{Nodes: 2, Firsts: []uint32{0}}, []uint32(nil)
		for _, size := range c.sizes {
			l.Owners = append(l.Owners, 0)
			for range size {
				batch = append(batch, uint32(len(batch)))
			}
			l.Firsts = append(l.Firsts, uint32(len(batch)))
		}
		var g Grains
		g.Cut(&l, batch)
		for shard, want := range c.want {
			if got := g.Run(shard, 2); got != want {
				t.Errorf("%s: grain %d falls to run %d, want %d", name, shard, got, want)
			}
		}
	}
}

func TestSlices(t *testing.T) {
	for size := range 30 {
		batch := make([]uint32, size)
		for i := range batch {
			batch[i] = uint32(i)
		}
		for parts := 1; parts < 8; parts++ {
			var all []uint32
			for part := range parts {
				s := Slice(batch, part, parts)
				if len(s) < size/parts || len(s) > size/parts+1 {
					t.Errorf("part %d of %d of %d has %d", part, parts, size, len(s))
				}
				all = append(all, s...)
			}
			if !slices.Equal(all, batch) {
				t.Errorf("%d parts of %d are %v", parts, size, all)
			}
		}
	}
}

func TestMoreUsesMemoryAgain(t *testing.T) {
	var to []Group
	fill := func(groups int) {
		to = to[:0]
		for i := range groups {
			var g *Group
			to, g = More(to)
			if len(g.Roots) != 0 || g.Grain != -1 || g.From != -1 || g.Slot != 0 || g.Model != 0 {
				t.Fatalf("a new group is %v", *g)
			}
			g.Roots = append(g.Roots, 1, 2, 3)
			g.Grain, g.Slot, g.Model, g.From = i, i, i, i
		}
	}
	fill(5)
	fill(2)
	if got := testing.AllocsPerRun(10, func() { fill(5) }); got > 0 {
		t.Errorf("groups that were there before take %v allocations", got)
	}
}
