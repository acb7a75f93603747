package build

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// described is a source whose edges have features.
type described struct {
	*memory
	features []float32
}

func (d described) Meta() graph.Meta {
	meta := d.meta
	meta.EdgeFeatures = len(d.features) / len(d.edges.Src)
	return meta
}

func (d described) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	at, columns := 0, d.Meta().EdgeFeatures
	return d.memory.Edges(ctx, func(b graph.EdgeBatch) error {
		b.Rows = append([]float32(nil), d.features[at*columns:][:len(b.Src)*columns]...)
		at += len(b.Src)
		defer clear(b.Rows)
		return yield(b)
	})
}

// describe gives each edge of a source features.
func describe(m *memory, columns int) described {
	r := rand.New(rand.NewPCG(5, 6))
	d := described{memory: m, features: make([]float32, columns*len(m.edges.Src))}
	for i := range d.features {
		d.features[i] = float32(r.NormFloat64())
	}
	return d
}

// TestEdgeRows compares the features of edges in shards with those of the source: edges that stand
// twice have the mean of theirs, in float64 and in the order of the source.
func TestEdgeRows(t *testing.T) {
	for _, partitioner := range []string{random, stream, multilevel} {
		for _, weighted := range []bool{false, true} {
			for _, undirected := range []bool{false, true} {
				for _, dtype := range []graph.DType{graph.F32, graph.BF16} {
					t.Run(fmt.Sprintf("%s,weighted=%v,undirected=%v,%s", partitioner, weighted, undirected, dtype), func(t *testing.T) {
						m := shape{vertices: 60, edges: 900, weighted: weighted, features: 3, classes: 2}.source(3)
						testEdgeRows(t, describe(m, 5), Options{Partitioner: partitioner, Undirected: undirected, DType: dtype, Shards: 3, Seed: 4})
					})
				}
			}
		}
	}
}

type pairOf struct{ src, dst string }

func testEdgeRows(t *testing.T, d described, o Options) {
	o.Dir = filepath.Join(t.TempDir(), "shards")
	manifest, err := Run(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	if manifest.EdgeFeatures != 5 || manifest.Weighted != d.meta.Weighted {
		t.Fatalf("the manifest has %d features of edges, and weights: %v", manifest.EdgeFeatures, manifest.Weighted)
	}
	rows, weights := map[pairOf][][]float32{}, map[pairOf]float32{}
	for i, src := range d.edges.Src {
		add := func(src, dst uint32) {
			p := pairOf{d.name(int(src)), d.name(int(dst))}
			rows[p] = append(rows[p], d.features[5*i:][:5])
			if d.meta.Weighted {
				weights[p] += d.edges.Weights[i]
			}
		}
		if add(src, d.edges.Dst[i]); o.Undirected && src != d.edges.Dst[i] {
			add(d.edges.Dst[i], src)
		}
	}
	names, shards := []string{}, []*graph.Shard{}
	for i := range manifest.Shards {
		s, err := graph.OpenShard(filepath.Join(o.Dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		shards = append(shards, s)
		for row := range s.Vertices {
			names = append(names, string(s.Originals.Append(nil, row)))
		}
	}
	found, twice := 0, 0
	for _, s := range shards {
		if (s.Weights != nil) != d.meta.Weighted || s.EdgeRows.Columns != 5 {
			t.Fatalf("shard %d has weights: %v, and %d columns", s.Number, s.Weights != nil, s.EdgeRows.Columns)
		}
		for row := range s.Vertices {
			for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
				p := pairOf{names[s.Indices[e]], names[int(s.First)+row]}
				got := s.EdgeRows.Append(nil, e)
				if len(rows[p]) > 1 {
					twice++
				}
				for c, x := range got {
					sum := 0.0
					for _, r := range rows[p] {
						sum += float64(r[c])
					}
					want := float32(sum / float64(len(rows[p])))
					if o.DType == graph.BF16 {
						want = nearest(want)
					}
					if x != want {
						t.Fatalf("edge %v has %v in column %d, and not %v, of %d edges", p, x, c, want, len(rows[p]))
					}
				}
				if d.meta.Weighted && math.Abs(float64(s.Weights[e]-weights[p])) > 1e-5 {
					t.Fatalf("edge %v weighs %v and not %v", p, s.Weights[e], weights[p])
				}
				found++
			}
		}
	}
	if found != len(rows) || twice == 0 {
		t.Fatalf("%d edges of %d, %d of them merged", found, len(rows), twice)
	}
}

// TestEdgeRowsInPieces cuts a shard whose edges are sorted in several pieces.
func TestEdgeRowsInPieces(t *testing.T) {
	d := describe(shape{vertices: 40, edges: 800, weighted: true, features: 1}.source(9), 2)
	meta := func(limit int) []graph.ShardInfo {
		o, err := Options{Dir: filepath.Join(t.TempDir(), "shards"), Partitioner: random, Shards: 2}.settle(d)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := newPlan(d, o)
		if err != nil {
			t.Fatal(err)
		}
		if limit > 0 {
			p.records, p.most = limit, 1000
			p.derive()
		}
		m, err := execute(t.Context(), d, o, p)
		if err != nil {
			t.Fatal(err)
		}
		return m.Shards
	}
	for i, whole := range meta(0) {
		if parts := meta(64)[i]; parts != whole {
			t.Errorf("shard %d sorted in pieces is %+v, and at once %+v", i, parts, whole)
		}
	}
}

func TestEdgeRowsRefused(t *testing.T) {
	d := describe(shape{vertices: 10, edges: 20, features: 1}.source(1), 2)
	d.features[7] = float32(math.Inf(1))
	_, err := Run(t.Context(), d, Options{Dir: filepath.Join(t.TempDir(), "shards")})
	if err == nil || !strings.Contains(err.Error(), "+Inf, which is no finite number: give each edge finite features") {
		t.Errorf("an infinite feature: %v", err)
	}
	d.features = d.features[:20*1]
	d.features[7] = 0
	short := described{d.memory, d.features}
	if _, err := Run(t.Context(), short, Options{Dir: filepath.Join(t.TempDir(), "shards")}); err != nil {
		t.Errorf("one column: %v", err)
	}
}
