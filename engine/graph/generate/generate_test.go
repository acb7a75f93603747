package generate

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// whole is a graph read through.
type whole struct {
	graph.Source
	src, dst []uint32
	features []float32
}

func read(t *testing.T, o Options) whole {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return again(t, s)
}

// again reads s and checks that its batches are as they should be.
func again(t *testing.T, s graph.Source) whole {
	t.Helper()
	g, m := whole{Source: s}, s.Meta()
	err := s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		if len(b.Src) != len(b.Dst) || len(b.Src) == 0 || len(b.Src) > batchEdges || b.Weights != nil {
			t.Fatalf("a batch of %d and %d ends", len(b.Src), len(b.Dst))
		}
		for i := range b.Src {
			if b.Src[i] >= m.Vertices || b.Dst[i] >= m.Vertices || b.Src[i] == b.Dst[i] {
				t.Fatalf("edge %d -> %d of %d vertices", b.Src[i], b.Dst[i], m.Vertices)
			}
		}
		g.src, g.dst = append(g.src, b.Src...), append(g.dst, b.Dst...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(g.src)) != m.Edges {
		t.Fatalf("%d edges, said to be %d", len(g.src), m.Edges)
	}
	err = s.Features(t.Context(), func(b graph.FeatureBatch) error {
		if b.Vertices != nil || int(b.First)*m.Features != len(g.features) || len(b.Dense) > max(batchFloats, m.Features) {
			t.Fatalf("a batch of %d numbers from %d", len(b.Dense), b.First)
		}
		g.features = append(g.features, b.Dense...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.features) != int(m.Vertices)*m.Features {
		t.Fatalf("%d numbers of features", len(g.features))
	}
	return g
}

func same(a, b whole) bool {
	return slices.Equal(a.src, b.src) && slices.Equal(a.dst, b.dst) && slices.Equal(a.features, b.features) &&
		slices.Equal(a.Labels(), b.Labels()) && slices.Equal(a.Splits()[0], b.Splits()[0])
}

func TestBitsDependOnTheSeedAlone(t *testing.T) {
	for _, kind := range kinds {
		o := Options{Kind: kind, Vertices: 5_003, Edges: 100_000, Features: 70, Classes: 7, Homophily: 0.7, Seed: 1}
		first := read(t, o)
		if !same(first, again(t, first.Source)) {
			t.Errorf("%s: a second pass differs", kind)
		}
		threads := runtime.GOMAXPROCS(1)
		one := read(t, o)
		runtime.GOMAXPROCS(5)
		five := read(t, o)
		runtime.GOMAXPROCS(threads)
		if !same(first, one) || !same(first, five) {
			t.Errorf("%s: the number of threads matters", kind)
		}
		o.Seed++
		other := read(t, o)
		if slices.Equal(first.src, other.src) || slices.Equal(first.features, other.features) ||
			slices.Equal(first.Labels(), other.Labels()) || slices.Equal(first.Splits()[0], other.Splits()[0]) {
			t.Errorf("%s: the seed does not matter", kind)
		}
	}
}

// Golden numbers: a graph must not change with the version of this program.
func TestBitsStay(t *testing.T) {
	for kind, want := range map[string]uint64{"rmat": 0xa3eb6661e0d0f8d1, "sbm": 0x824c085cfb50b382} {
		g := read(t, Options{Kind: kind, Vertices: 1_000, Edges: 5_000, Features: 3, Classes: 5, Homophily: 0.6, Seed: 7})
		sum := uint64(0)
		for i := range g.src {
			sum = mix(sum ^ uint64(g.src[i])<<32 ^ uint64(g.dst[i]))
		}
		for _, x := range g.features {
			sum = mix(sum ^ uint64(int64(x*1e6)))
		}
		for v, label := range g.Labels() {
			sum = mix(sum ^ uint64(label)<<8 ^ uint64(g.Splits()[0][v]))
		}
		if sum != want {
			t.Errorf("%s: %#x, was %#x", kind, sum, want)
		}
	}
}

// In the bubble a goroutine that is left behind is a failure.
func TestStoppingEarlyLeavesNothing(t *testing.T) {
	for _, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			s, err := New(Options{Kind: kind, Vertices: 50_000, Edges: 1 << 40, Features: 64, Classes: 4})
			if err != nil {
				t.Fatal(err)
			}
			enough := errors.New("enough")
			for _, after := range []int{1, 2, 5} {
				n := 0
				err = s.Edges(t.Context(), func(graph.EdgeBatch) error {
					if n++; n == after {
						return enough
					}
					return nil
				})
				if !errors.Is(err, enough) || n != after {
					t.Errorf("%s: edges: %v after %d batches", kind, err, n)
				}
				n = 0
				err = s.Features(t.Context(), func(graph.FeatureBatch) error {
					if n++; n == after {
						return enough
					}
					return nil
				})
				if !errors.Is(err, enough) || n != after {
					t.Errorf("%s: features: %v after %d batches", kind, err, n)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			n := 0
			err = s.Edges(ctx, func(graph.EdgeBatch) error {
				if n++; n == 3 {
					cancel(enough)
				}
				return nil
			})
			if !errors.Is(err, enough) || n != 3 {
				t.Errorf("%s: %v after %d batches", kind, err, n)
			}
			if err := s.Features(ctx, func(graph.FeatureBatch) error { t.Error("went on"); return nil }); !errors.Is(err, enough) {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

func TestWithoutClassesAndFeatures(t *testing.T) {
	for _, kind := range kinds {
		g := read(t, Options{Kind: kind, Vertices: 3_000, Edges: 10_001})
		if g.Labels() != nil || g.Splits() != nil || g.IDs().Ints != nil || g.IDs().Strings != nil || g.Meta().Format != kind || g.Meta().Weighted || g.Meta().Sparse {
			t.Errorf("%s: %+v", kind, g.Meta())
		}
		if want := uint64(10_001 - strings.Count(kind, "sbm")); g.Meta().Edges != want {
			t.Errorf("%s: %d edges", kind, g.Meta().Edges)
		}
		if !strings.Contains(g.Notes()[1], "drawn twice") || !strings.Contains(g.Notes()[0], "synthetic ("+kind) {
			t.Errorf("%s: %q", kind, g.Notes())
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPermutation(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 8, 100, 4096, 10_007} {
		p := newPermutation(n, 9)
		seen, moved := make([]bool, n), 0
		for x := range n {
			y := p.of(x)
			if y >= n || seen[y] || p.from(y) != x {
				t.Fatalf("of %d: %d comes to %d, back to %d", n, x, y, p.from(y))
			}
			seen[y] = true
			if x != y {
				moved++
			}
		}
		if n > 50 && moved < int(n)*9/10 {
			t.Errorf("of %d: %d moved", n, moved)
		}
	}
}
