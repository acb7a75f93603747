package grappa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// sights are settings that make groups see different things.
var sights = map[string]Settings{
	"strict":      given("groups=4", "swept=2", "loader=strict"),
	"fixed":       given("groups=4", "sweep=off", "loader=strict"),
	"halo":        given("groups=4", "swept=1"),
	"fixed halo":  given("groups=4", "sweep=off"),
	"deep halo":   given("groups=4", "swept=1", "depth=2"),
	"deeper halo": given("groups=3", "sweep=off", "depth=3"),
	"sampled":     given("groups=4", "swept=1", "loader=halo-sampled", "cap=37"),
	"sampled all": given("groups=4", "swept=1", "loader=halo-sampled", "cap=1048576"),
	"by itself":   given("groups=5", "loader=halo-sampled"),
}

// seen is what a group sees, written down in the simplest way.
type seen struct {
	inner, rows, halo map[uint32]bool
	edges             map[edge]bool
}

// naively finds it, but for which of a sampled halo is kept.
func naively(edges []edge, firsts []uint32, s *Schedule, o *Settings, group, super int) seen {
	w := seen{map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}, map[edge]bool{}}
	first, end := s.Base(group)
	shards := s.Swept(group, super)
	for shard := first; shard < end; shard++ {
		shards = append(shards, shard)
	}
	for _, shard := range shards {
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			w.inner[v], w.rows[v] = true, true
		}
	}
	for hop := range o.hop() {
		var next []uint32
		for _, e := range edges {
			if w.rows[e.to] && !w.inner[e.from] && !w.halo[e.from] {
				next = append(next, e.from)
			}
		}
		for _, v := range next {
			w.halo[v] = true
			if hop+1 < o.hop() {
				w.rows[v] = true
			}
		}
	}
	for _, e := range edges {
		if w.rows[e.to] && (w.inner[e.from] || w.halo[e.from]) {
			w.edges[e] = true
		}
	}
	return w
}

// same says what differs between a context and what is written down. Of a sampled halo
// it takes what the context has.
func (w *seen) same(c *Context, n int, sampled bool) error {
	if sampled {
		for v := range w.halo {
			if !c.Has(v) {
				delete(w.halo, v)
			}
		}
		for e := range w.edges {
			if !w.inner[e.from] && !w.halo[e.from] {
				delete(w.edges, e)
			}
		}
	}
	if c.HaloRows() != len(w.halo) || !slices.IsSorted(slices.Collect(c.Halo())) || c.Rows() != len(w.inner)+len(w.halo) || c.Edges() != int64(len(w.edges)) {
		return fmt.Errorf("%d of halo, %d rows and %d edges, and there should be %d, %d and %d", c.HaloRows(), c.Rows(), c.Edges(), len(w.halo), len(w.inner)+len(w.halo), len(w.edges))
	}
	for v := range uint32(n) {
		if c.Has(v) != (w.inner[v] || w.halo[v]) {
			return fmt.Errorf("vertex %d is read: %v", v, c.Has(v))
		}
		sources, _ := c.Topology.Seen(v)
		for _, u := range sources {
			if !w.edges[edge{uint32(u), v}] {
				return fmt.Errorf("the edge from %d to %d is seen", u, v)
			}
		}
		if _, _, row := c.Coverage(v); row != w.rows[v] {
			return fmt.Errorf("the row of %d is seen: %v", v, row)
		}
	}
	return nil
}

const n = 400

// ends are those of shards, some of them empty.
var ends = []int{0, 30, 61, 61, 140, 170, 199, 250, 300, 301, 370, n}

func TestContextsAreAsWrittenDown(t *testing.T) {
	edges := wild(n, 2500, 1)
	shards := cut(edges, ends...)
	of, firsts := topology(t, shards), firstsOf(shards)
	for name, o := range sights {
		s := schedule(t, len(shards), o, 4)
		for super := range 2 * s.Slots() {
			for g := range s.Groups() {
				c := contextOf(t, of, firsts, s, o, g, super, 4)
				w := naively(edges, firsts, s, &o, g, super)
				if err := w.same(c, n, o.Loader == HaloSampled); err != nil {
					t.Fatalf("%s, group %d, super-epoch %d: %v", name, g, super, err)
				}
			}
		}
	}
}

// far leaves out the edges of some shards.
func far(t testing.TB, shards []*graph.Shard, is func(i int) bool) *sample.Topology {
	t.Helper()
	some, summaries := slices.Clone(shards), make([]*sample.Summary, len(shards))
	for i, s := range shards {
		if is(i) {
			some[i] = graph.NewSkeleton(s, graph.FeatureStats{}, false).Shard
			summaries[i] = &sample.Summary{Edges: int64(len(s.Indices))}
		}
	}
	to, err := sample.NewPartial(some, summaries)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// What a context is does not depend on which edges are here, nor on how the others are
// brought.
func TestContextsAreTheSameWhereverEdgesAre(t *testing.T) {
	edges := wild(n, 2500, 2)
	shards := cut(edges, ends...)
	whole, firsts := topology(t, shards), firstsOf(shards)
	for name, o := range sights {
		r := rand.New(rand.NewPCG(5, 5))
		s := schedule(t, len(shards), o, 4)
		for _, here := range []int{0, 1, 2, 5} {
			part := far(t, shards, func(i int) bool { return here == 0 || i%here != 0 })
			for g := range s.Groups() {
				want := contextOf(t, whole, firsts, s, o, g, 1, 4)
				came := map[uint32]bool{}
				var inside func(v, u uint32) bool
				if o.Loader == Strict {
					inside = func(_, u uint32) bool { return want.Has(u) }
				}
				var in *vicinity.Vault
				if here == 2 {
					in = vicinity.NewVault(t.TempDir())
				}
				b, err := NewBuilder(BuildOptions{
					Schedule: s, Settings: &o, Group: g, Super: 1, Seed: 4, Firsts: firsts, Topology: part, In: in,
					Row: func(v uint32) ([]int32, []float32, int32, bool) { return rowOf(whole, v, inside, came[v]) },
				})
				if err != nil {
					t.Fatal(err)
				}
				rounds := 0
				for len(b.Missing()) > 0 {
					if _, err := b.Context(); err == nil {
						t.Fatal("a context was built of which rows are missing")
					}
					some := slices.Clone(b.Missing())
					if rounds++; rounds%3 == 0 && len(some) > 1 { // some of them, in between
						from := r.IntN(len(some))
						some = some[from : from+1+r.IntN(len(some)-from)]
					}
					for _, v := range some {
						came[v] = true
					}
					b.Continue()
				}
				c, err := b.Context()
				if err != nil {
					t.Fatal(err)
				}
				if err := alike(c, want); err != nil {
					t.Fatalf("%s, group %d, %d: %v", name, g, here, err)
				}
				if here == 2 && (in.Size() == 0 || c.Index() == 0) {
					t.Errorf("%s, group %d: %d bytes are in files", name, g, in.Size())
				}
				if err := in.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// rowOf is a row as it is brought, without edges that inside, if given, says no to.
func rowOf(of *sample.Topology, v uint32, inside func(v, u uint32) bool, came bool) (some []int32, weights []float32, degree int32, ok bool) {
	if !came {
		return nil, nil, 0, false
	}
	sources, _ := of.Row(int(v))
	for _, u := range sources {
		if inside == nil || uint32(u) == v || inside(v, uint32(u)) {
			some = append(some, u)
		}
	}
	return some, nil, int32(len(sources)), true
}

func alike(a, b *Context) error {
	if !slices.Equal(slices.Collect(a.Halo()), slices.Collect(b.Halo())) || a.Share != b.Share || !slices.Equal(a.Swept, b.Swept) || a.Edges() != b.Edges() {
		return fmt.Errorf("a halo of %v and %d edges, and not of %v and %d", a.Halo(), a.Edges(), b.Halo(), b.Edges())
	}
	for v := range uint32(n) {
		of, d := a.Topology.Seen(v)
		want, wantD := b.Topology.Seen(v)
		if !slices.Equal(of, want) || d != wantD || a.Has(v) != b.Has(v) {
			return fmt.Errorf("vertex %d sees %v of %d, and not %v of %d", v, of, d, want, wantD)
		}
	}
	return nil
}

// In a sweep each edge is seen by the group that its target is of, once in each
// super-epoch in which both its ends are there, and all edges are.
func TestASweepSeesEachEdge(t *testing.T) {
	edges := wild(n, 2500, 3)
	shards := cut(edges, ends...)
	of, firsts := topology(t, shards), firstsOf(shards)
	o := sights["strict"]
	s := schedule(t, len(shards), o, 6)
	times := map[edge]int{}
	for super := range s.Slots() {
		for g := range s.Groups() {
			c := contextOf(t, of, firsts, s, o, g, super, 6)
			for v := range uint32(n) {
				if !c.Root(v) {
					continue
				}
				sources, _ := c.Topology.Seen(v)
				for _, u := range sources {
					times[edge{uint32(u), v}]++
				}
			}
		}
	}
	l := peer.Layout{Firsts: firsts}
	for _, e := range edges {
		want := 1
		if s.Of(l.Shard(e.from)) == s.Of(l.Shard(e.to)) {
			want = s.Slots()
		}
		if times[e] != want {
			t.Fatalf("the edge from %d to %d is seen %d times, and should be %d", e.from, e.to, times[e], want)
		}
	}
	if len(times) != len(edges) {
		t.Errorf("%d edges are seen of %d", len(times), len(edges))
	}
}

// A capped halo has never more rows than its cap; each stays as probably as any other,
// whichever group asks.
func TestASampledHaloKeepsItsCap(t *testing.T) {
	edges := wild(n, 2500, 4)
	shards := cut(edges, ends...)
	of, firsts := topology(t, shards), firstsOf(shards)
	o := given("groups=4", "sweep=off", "loader=halo-sampled", "cap=40")
	s := schedule(t, len(shards), o, 4)
	all := slices.Collect(contextOf(t, of, firsts, s, given("groups=4", "sweep=off"), 1, 0, 4).Halo())
	kept := map[uint32]int{}
	const supers = 3000
	for super := range supers {
		c := contextOf(t, of, firsts, s, o, 1, super, 4)
		if c.HaloRows() != o.Cap || c.Share != float64(o.Cap)/float64(len(all)) {
			t.Fatalf("a halo of %d, of %d, and a share of %v", c.HaloRows(), len(all), c.Share)
		}
		for v := range c.Halo() {
			kept[v]++
		}
	}
	p := float64(o.Cap) / float64(len(all))
	sum := 0.0
	for _, v := range all {
		z := (float64(kept[v]) - supers*p) / math.Sqrt(supers*p*(1-p))
		sum += z * z
		if math.Abs(z) > 5 {
			t.Errorf("vertex %d was kept %d times of %d, with a probability of %.3f", v, kept[v], supers, p)
		}
	}
	if k := float64(len(all)); math.Abs(sum-k) > 6*math.Sqrt(2*k) {
		t.Errorf("the squares of %v deviations add up to %v", k, sum)
	}
	other := contextOf(t, of, firsts, s, o, 2, 0, 4)
	if err := alike(other, contextOf(t, of, firsts, s, o, 2, 1, 4)); err == nil {
		t.Error("the halo stays the same from one super-epoch to the next")
	}
}

// What nothing is left out of is the halo, bit for bit.
func TestAHaloBelowItsCapIsWhole(t *testing.T) {
	edges := wild(n, 2500, 4)
	shards := cut(edges, ends...)
	of, firsts := topology(t, shards), firstsOf(shards)
	sampled, whole := sights["sampled all"], sights["halo"]
	s := schedule(t, len(shards), sampled, 4)
	for g := range s.Groups() {
		a, b := contextOf(t, of, firsts, s, sampled, g, 0, 4), contextOf(t, of, firsts, s, whole, g, 0, 4)
		if err := alike(a, b); err != nil {
			t.Error(err)
		}
		for _, form := range []sample.Form{{}, {SelfLoops: true, Weighting: sample.Symmetric}, {SelfLoops: true}} {
			var bits []string
			for _, c := range []*Context{a, b} {
				sampler := sample.New(of, sample.Options{Fanouts: []int{3, 2}, Form: form, Seed: 1})
				sampler.Within(c.Topology)
				var batch sample.Batch
				if err := sampler.Sample(t.Context(), &batch, 1, 1, []uint32{firsts[3*g+2], firsts[3*g+2] + 7}); err != nil {
					t.Fatal(err)
				}
				bits = append(bits, fmt.Sprint(batch.Blocks[0].CSR.Indices, batch.Blocks[0].Values, batch.Blocks[1].Values, batch.Blocks[0].Values == nil))
			}
			if bits[0] != bits[1] {
				t.Errorf("%v: blocks are %s and %s", form, bits[0], bits[1])
			}
		}
	}
}

func TestContextsThatThereAreNot(t *testing.T) {
	shards := cut(wild(n, 100, 1), ends...)
	of, firsts := topology(t, shards), firstsOf(shards)
	o := sights["halo"]
	s := schedule(t, len(shards), o, 1)
	for want, b := range map[string]BuildOptions{
		"there is no context of group 4 of 4 in super-epoch 0":                      {Group: 4, Firsts: firsts},
		"there is no context of group -1 of 4":                                      {Group: -1, Firsts: firsts},
		"group 1 of 4 in super-epoch -1":                                            {Group: 1, Super: -1, Firsts: firsts},
		"a context of a graph of 12 shards and 400 vertices is to be built with 12": {Firsts: firsts[1:]},
	} {
		b.Schedule, b.Settings, b.Topology = s, &o, of
		if _, err := NewBuilder(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
