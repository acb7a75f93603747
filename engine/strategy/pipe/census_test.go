package pipe

import (
	"fmt"
	"slices"
	"testing"
)

// What is counted of the parts of any node is what its worker makes.
func TestPartsAreAsWorkersMakeThem(t *testing.T) {
	near := func(from, to int) bool { return from/40 == to/40 || from%16 == 0 }
	for name, edges := range map[string]func(from, to int) bool{"anywhere": anywhere, "near": near} {
		w := newWorld(t, 4, slices.Repeat([]int{20}, 8), edges)
		for _, ways := range []int{1, 2, 4} {
			f := w.facts(t, deep("gcn", 3), ways, fmt.Sprint("pipe.ways=", ways))
			f.Settings.Graph = true
			shape, err := f.shape(ways)
			if err != nil {
				t.Fatal(err)
			}
			s := newSetup(deep("gcn", 3), 1, ways, ways)
			j := w.start(t, s)
			split := 0
			for _, n := range j.nodes {
				var want []part
				for p := range n.ways[0].at {
					for i, g := range n.ways[0].at[p] {
						other := slices.ContainsFunc(n.ways[0].at[p], func(o *grain) bool { return o != g && o.shard == g.shard })
						want = append(want, part{position: p, shard: g.shard, inner: i < n.ways[0].inner[p], split: other, vertices: len(g.vertices), sources: len(g.rows), entries: g.block.Entries()})
						if other {
							split++
						}
					}
				}
				got := slices.Clone(f.partsOf(shape)[n.ways[0].number])
				for i := range got {
					got[i].inner = got[i].inner && ways > 1
				}
				for i := range want {
					want[i].inner = want[i].inner && ways > 1
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %d ways: node's way %d is counted as %+v, and made as %+v", name, ways, n.ways[0].number, got, want)
				}
			}
			if name == "near" && ways > 1 && split == 0 {
				t.Errorf("%d ways: no shard is in two parts: the test shows nothing", ways)
			}
		}
	}
}
