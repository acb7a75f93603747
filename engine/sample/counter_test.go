package sample

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// agrees fails unless a counter finds the sizes and the vertices of what a sampler draws.
func agrees(ctx context.Context, c *Counter, s *Sampler, epoch, step uint64, roots []uint32) error {
	var b Batch
	var sizes []Size
	if err := s.Sample(ctx, &b, epoch, step, roots); err != nil {
		return err
	}
	sizes, err := c.Count(ctx, sizes, epoch, step, roots)
	if err != nil {
		return err
	}
	if len(sizes) != len(b.Blocks) {
		return fmt.Errorf("%d sizes of %d blocks", len(sizes), len(b.Blocks))
	}
	for i, z := range sizes {
		if want := (Size{b.Blocks[i].Rows, b.Blocks[i].Cols, b.Blocks[i].Entries()}); z != want {
			return fmt.Errorf("block %d: %+v, not %+v", i, z, want)
		}
	}
	got, want := slices.Sorted(slices.Values(c.Vertices())), slices.Sorted(slices.Values(b.Blocks[0].Vertices))
	if !slices.Equal(got, want) {
		return errors.New("other vertices")
	}
	return nil
}

func TestACounterCountsWhatASamplerDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, n := range []int{900, 300_000} { // with bits from the start, and with a table
		edges := wild(n, 9000, 1)
		for _, weighted := range []bool{false, true} {
			shards := cut(edges, weighted, 3, 70, 200, 200, 333, 600, n)
			whole := topology(t, shards)
			for _, form := range forms() {
				for far := range 3 {
					to := partial(t, shards, func(i int) bool { return far == 2 || far == 1 && i%2 == 0 })
					for _, fanouts := range [][]int{{5, 3}, {0, 2, 2, 3}, {70, 0}, {1}, {0, 0, 0, 0, 0, 0}, {2, 0, 1, 0, 0, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 3, 3}} {
						o := Options{Fanouts: fanouts, Form: form, Seed: 3}
						s := New(whole, o)
						o.Far = &pieces{elsewhere{t: t, drawer: NewDrawer(whole, o), partial: to}}
						c := NewCounter(to, o)
						for step := range uint64(2) {
							if err := agrees(t.Context(), c, s, 1, step, distinct(r, n, 150)); err != nil {
								t.Fatalf("%d vertices, weighted %v, %v, fan-outs %v, far %d: %v", n, weighted, form, fanouts, far, err)
							}
						}
					}
				}
			}
		}
	}
}

// pieces draws as elsewhere does, and fails if it is asked for too much at a time.
type pieces struct{ elsewhere }

func (p *pieces) Draw(ctx context.Context, epoch, step uint64, hop, fanout int, vertices []uint32, to *Drawn) error {
	if len(vertices) == 0 || len(vertices) > piece(fanout) || fanout > 0 && len(vertices)*fanout > 1<<18 {
		return fmt.Errorf("%d rows of %d at a time", len(vertices), fanout)
	}
	return p.elsewhere.Draw(ctx, epoch, step, hop, fanout, vertices, to)
}

func TestACounterSeesWhatIsConfined(t *testing.T) {
	const n = 700
	of := topology(t, cut(wild(n, 6000, 4), true, 3, 70, 200, 200, 333, 600, n))
	for name, confines := range sights(n) {
		r := rand.New(rand.NewPCG(8, 3))
		to, err := of.Confine(confines)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range forms() {
			o := Options{Fanouts: []int{4, 0, 3}, Form: form, Seed: 7}
			s, c := New(of, o), NewCounter(of, o)
			for _, within := range []*Topology{to, of, to} {
				s.Within(within)
				c.Within(within)
				if err := agrees(t.Context(), c, s, 5, 1, distinct(r, n, 40)); err != nil {
					t.Fatalf("%s, %v: %v", name, form, err)
				}
			}
		}
	}
}

// What many hops over the same vertices take is known after one.
func TestManyHopsCountAsFew(t *testing.T) {
	shards := rmat(t, 1<<12, 1<<16)
	o := Options{Fanouts: make([]int, 100_000)}
	for i := range o.Fanouts {
		o.Fanouts[i] = i / 50_000 * 3
	}
	c := NewCounter(topology(t, shards), o)
	sizes, err := c.Count(t.Context(), nil, 0, 0, []uint32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	// Hops as they would be counted one by one take 100,000 times the graph's edges.
	last := sizes[len(sizes)-50_000]
	if sizes[0].Sources != last.Sources || sizes[0].Entries == 0 || sizes[0].Entries >= last.Entries {
		t.Errorf("%+v, and with all edges %+v", sizes[0], last)
	}
}

// Beyond what is to be counted, sizes are of what is known, and never larger than the
// real ones.
func TestACounterStops(t *testing.T) {
	shards := rmat(t, 1<<12, 1<<16)
	to := topology(t, shards)
	roots := distinct(rand.New(rand.NewPCG(1, 1)), 1<<12, 100)
	for _, fanouts := range [][]int{{0, 0, 0}, {9, 9, 9}} {
		o := Options{Fanouts: fanouts}
		all, err := NewCounter(to, o).Count(t.Context(), nil, 0, 0, roots)
		if err != nil {
			t.Fatal(err)
		}
		total := func(sizes []Size) (n int) {
			for _, z := range sizes {
				n += z.Sources + z.Entries
			}
			return n
		}
		for most := 1; most <= total(all); most += total(all) / 50 {
			c := NewCounter(to, o)
			c.Most = most
			some, err := c.Count(t.Context(), nil, 0, 0, roots)
			if err != nil {
				t.Fatal(err)
			}
			if must := most < total(all)/2; must && !c.Cut || c.Cut && (total(some) <= most || total(some) > total(all)) || !c.Cut && !slices.Equal(some, all) {
				t.Errorf("%v, at most %d of %d: %v, cut %v", fanouts, most, total(all), some, c.Cut)
			}
			for i := range some {
				if a, b := some[i], all[i]; a.Targets > b.Targets || a.Sources > b.Sources || a.Entries > b.Entries {
					t.Errorf("%v, at most %d: %v is more than %v", fanouts, most, some, all)
				}
			}
		}
	}
}

func TestACounterRefusesBadRoots(t *testing.T) {
	shards := cut(wild(100, 500, 1), false, 50, 100)
	o := Options{Fanouts: []int{2}}
	c := NewCounter(partial(t, shards, func(i int) bool { return i == 1 }), o)
	for want, roots := range map[string][]uint32{
		"root 100 is not a vertex of a graph of 100": {5, 100}, "root 7 occurs twice": {7, 3, 7}, "nobody asks": {1, 99},
	} {
		if _, err := c.Count(t.Context(), nil, 0, 0, roots); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	c.o.Far = nothing{}
	if _, err := c.Count(t.Context(), nil, 0, 0, []uint32{99}); err == nil || !strings.Contains(err.Error(), "1 rows were asked for, and 0 came") {
		t.Error(err)
	}
}

// The set takes no more than a few bytes a vertex, and knows what was added.
func TestMet(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, vertices := range []int{1, 100, 1 << 20, 1 << 31} {
		m := met{vertices: vertices}
		for range 2 {
			m.begin()
			has := map[uint32]bool{}
			for range 20_000 {
				v := uint32(r.IntN(min(vertices, 1<<30)))
				if got := m.add(v); got == has[v] {
					t.Fatalf("%d of %d: new is %v", v, vertices, got)
				}
				has[v] = true
			}
		}
		if bytes, most := 8*len(m.bits)+4*len(m.table), max(4*leastSlots, 20_000*16); bytes > most {
			t.Errorf("%d bytes", bytes)
		}
	}
}

// BenchmarkCount compares counting with sampling.
func BenchmarkCount(b *testing.B) {
	shards := rmat(b, 1<<18, 1<<22)
	to := topology(b, shards)
	roots := distinct(rand.New(rand.NewPCG(1, 1)), 1<<18, 1024)
	for _, fanouts := range [][]int{{15, 10, 5}, {10, 10}, {0, 0}} {
		o := Options{Fanouts: fanouts}
		b.Run(fmt.Sprintf("count%v", fanouts), func(b *testing.B) {
			c, step := NewCounter(to, o), uint64(0)
			var sizes []Size
			for b.Loop() {
				step++
				var err error
				if sizes, err = c.Count(b.Context(), sizes, 1, step, roots); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("sample%v", fanouts), func(b *testing.B) {
			s, step := New(to, o), uint64(0)
			var batch Batch
			for b.Loop() {
				step++
				if err := s.Sample(b.Context(), &batch, 1, step, roots); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
