package grappa

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// local is a graph in which each vertex hears one, two or four others, most of them of
// its own shard.
func local(shards, size int, seed uint64) (edges []edge) {
	r := rand.New(rand.NewPCG(seed, 4))
	n := shards * size
	for v := range n {
		heard := map[int]bool{v: true}
		for want := 1 << r.IntN(3); want > 0; {
			u := r.IntN(n)
			if r.IntN(10) < 7 {
				u = v/size*size + r.IntN(size)
			}
			if !heard[u] {
				heard[u] = true
				want--
				edges = append(edges, edge{uint32(u), uint32(v)})
			}
		}
	}
	return edges
}

// Shards stay where they are, most edges are within one, and over a sweep each group
// meets each other shard once: edges are seen always or once, and weights by node, which
// take all for equally probable, are not exact then even where the loss is linear.
// Weighted messages are. -v prints how far each is off.
func TestEstimatorsOverASweep(t *testing.T) {
	for _, c := range []struct{ shards, size, groups, swept int }{{4, 4, 4, 1}, {6, 3, 6, 1}, {8, 3, 4, 2}, {8, 3, 4, 4}, {7, 3, 3, 2}} {
		var ends []int
		for i := range c.shards {
			ends = append(ends, (i+1)*c.size)
		}
		n := uint32(c.shards * c.size)
		shards := cut(local(c.shards, c.size, 2), ends...)
		var batch []uint32
		for v := range n {
			batch = append(batch, v)
		}
		for _, k := range kinds {
			m := k.machine(t, int(n))
			fanouts := make([]int, k.layers)
			for _, correction := range []string{CorrectNone, CorrectNode, CorrectMessage} {
				o := given("loader=strict", "correction="+correction)
				o.Groups, o.Swept = c.groups, c.swept
				p := newStep(t, shards, o, 2)
				truth := m.matrices(alone(t, p.of, m, batch, fanouts, 2))
				mean := make([]float64, len(truth))
				for super := range p.schedule.Slots() {
					add(mean, 1/float64(p.schedule.Slots()), m.matrices(p.gradient(t, m, batch, super, fanouts)))
				}
				cosine, scale := against(mean, truth)
				name := fmt.Sprintf("%+v, %s, %s", c, k.name, correction)
				t.Logf("%s: cosine %.3f, scale %.3f", name, cosine, scale)
				d := off(mean, truth)
				if exact := k.linear && correction == CorrectMessage; exact && d > 1e-12 || !exact && d < 1e-2 {
					t.Errorf("%s is %.3g off", name, d)
				}
			}
		}
	}
}
