package build

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
)

// A vertex is all that shards say of one.
type vertex struct {
	in       map[string]float32 // weights of the edges from each source
	features []float32
	label    int32
	target   []int32 // of targets with columns: words
	marks    []graph.Mark
}

// expected is what the source should become, written down in the simplest way.
func expected(m *memory, o Options) map[string]*vertex {
	all := map[string]*vertex{}
	for v := range int(m.meta.Vertices) {
		x := &vertex{in: map[string]float32{}, label: graph.NoLabel, features: make([]float32, m.meta.Features)}
		if m.labels != nil {
			x.label = m.labels[v]
		}
		x.target = wordsOf(m, v)
		for _, marks := range m.splits {
			x.marks = append(x.marks, marks[v])
		}
		if m.rows != nil && m.rows[v] != nil {
			copy(x.features, m.rows[v])
		}
		if o.DType == graph.BF16 {
			for i, f := range x.features {
				x.features[i] = nearest(f)
			}
		}
		all[m.name(v)] = x
	}
	add := func(src, dst uint32, i int) {
		in := all[m.name(int(dst))].in
		if m.meta.Weighted {
			in[m.name(int(src))] += m.edges.Weights[i]
		} else {
			in[m.name(int(src))] = 1
		}
	}
	for i, src := range m.edges.Src {
		dst := m.edges.Dst[i]
		add(src, dst, i)
		if o.Undirected && src != dst {
			add(dst, src, i)
		}
	}
	return all
}

// wordsOf returns the words of a vertex' targets.
func wordsOf(m *memory, v int) (words []int32) {
	for c := range m.meta.Classes {
		word := graph.NoLabel
		switch m.meta.Targets {
		case graph.OneClass:
			return nil
		case graph.YesOrNo:
			if cell := m.columns.YesOrNo[v*m.meta.Classes+c]; cell != graph.Missing {
				word = int32(math.Float32bits(float32(cell)))
			}
		default:
			if cell := m.columns.Numbers[v*m.meta.Classes+c]; cell == cell {
				word = int32(math.Float32bits(cell))
			}
		}
		words = append(words, word)
	}
	return words
}

// nearest tries the numbers of type BF16 around f.
func nearest(f float32) float32 {
	down := math.Float32frombits(math.Float32bits(f) &^ 0xffff)
	up := math.Float32frombits(math.Float32bits(f)&^0xffff + 0x10000)
	toDown, toUp := math.Abs(float64(f)-float64(down)), math.Abs(float64(up)-float64(f))
	if toDown < toUp || toDown == toUp && math.Float32bits(down)>>16%2 == 0 {
		return down
	}
	return up
}

// opened reads all shards back, and holds what the manifest says against them.
func opened(t *testing.T, dir string, m *graph.Manifest) map[string]*vertex {
	t.Helper()
	all := map[string]*vertex{}
	var shards []*graph.Shard
	var names []string
	next := uint32(0)
	for i, info := range m.Shards {
		path := filepath.Join(dir, graph.ShardFile(i))
		s, err := graph.OpenShard(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if digest, err := s.SHA256(); err != nil || digest != info.SHA256 {
			t.Fatalf("%s: its digest is %s and not %s: %v", path, digest, info.SHA256, err)
		}
		if s.Number != i || s.Shards != len(m.Shards) || s.First != next || uint64(s.Total) != m.Vertices || s.Features != m.Features || s.Classes != m.Classes || s.DType != m.DType {
			t.Fatalf("shard %d says of itself: %+v", i, s)
		}
		next += uint32(s.Vertices)
		for row := range s.Vertices {
			names = append(names, string(s.Originals.Append(nil, row)))
		}
		stat, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := (graph.ShardInfo{Vertices: uint64(s.Vertices), Edges: uint64(len(s.Indices)), Bytes: uint64(stat.Size())}); got.Vertices != info.Vertices || got.Edges != info.Edges || got.Bytes != info.Bytes {
			t.Errorf("shard %d: the manifest has %+v, the file %+v", i, info, got)
		}
		shards = append(shards, s)
	}
	if uint64(next) != m.Vertices {
		t.Errorf("shards hold %d vertices of %d", next, m.Vertices)
	}
	for i, s := range shards {
		var cut, training uint64
		outside := map[int32]bool{}
		for row := range s.Vertices {
			v := &vertex{in: map[string]float32{}, label: graph.NoLabel, features: rowOf(s, row)}
			for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
				source := s.Indices[e]
				w := float32(1)
				if s.Weights != nil {
					w = s.Weights[e]
				}
				v.in[names[source]] = w
				if uint32(source)-s.First >= uint32(s.Vertices) {
					cut++
					outside[source] = true
				}
			}
			switch has := slices.Contains(s.Labels, 0); {
			case s.Targets != graph.OneClass:
				v.target = s.AppendTarget(nil, row)
				if missing := !slices.ContainsFunc(v.target, func(word int32) bool { return word != graph.NoLabel }); !has || missing != (s.Labels[row] < 0) {
					t.Errorf("shard %d says that row %d has the label %d: %v", i, row, s.Labels[row], v.target)
				}
			case s.Labels != nil:
				v.label = s.Labels[row]
			}
			for _, marks := range s.Marks {
				v.marks = append(v.marks, marks[row])
			}
			if slices.Contains(v.marks, graph.Train) {
				training++
			}
			all[string(s.Originals.Append(nil, row))] = v
		}
		if info := m.Shards[i]; info.Cut != cut || info.Halo != uint64(len(outside)) || info.Training != training {
			t.Errorf("shard %d: the manifest has %+v, counted are cut %d, halo %d, training %d", i, info, cut, len(outside), training)
		}
	}
	return all
}

// rowOf is a row of features, however it is stored.
func rowOf(s *graph.Shard, row int) []float32 {
	out := make([]float32, s.Features)
	wide := func(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }
	switch {
	case s.Dense != nil:
		copy(out, s.Dense[row*s.Features:])
	case s.DenseBF16 != nil:
		for c := range out {
			out[c] = wide(s.DenseBF16[row*s.Features+c])
		}
	case s.Sparse != nil:
		for e := s.Sparse.Indptr[row]; e < s.Sparse.Indptr[row+1]; e++ {
			if s.Sparse.Values != nil {
				out[s.Sparse.Columns[e]] = s.Sparse.Values[e]
			} else {
				out[s.Sparse.Columns[e]] = wide(s.Sparse.ValuesBF16[e])
			}
		}
	}
	return out
}

func compare(t *testing.T, want, got map[string]*vertex) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d vertices came back of %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g == nil {
			t.Fatalf("vertex %q is gone", name)
		}
		if !maps.Equal(w.in, g.in) || !slices.Equal(w.features, g.features) || w.label != g.label || !slices.Equal(w.target, g.target) || !slices.Equal(w.marks, g.marks) {
			t.Fatalf("vertex %q is %+v and should be %+v", name, g, w)
		}
	}
}

// shapes are the graphs that users have, in small.
var shapes = []shape{
	{vertices: 1},
	{vertices: 2, edges: 3, features: 1, density: 1},
	{vertices: 300, edges: 2000, features: 7, density: 1, classes: 4, splits: 1},
	{vertices: 300, edges: 3000, weighted: true, features: 3, density: 1, missing: true, classes: 2, splits: 3, numbers: true},
	{vertices: 257, edges: 900, features: 40, density: 0.1, sparse: true, classes: 3, names: true},
	{vertices: 200, edges: 700, weighted: true, features: 50, density: 0.1, sparse: true, missing: true, listed: true, names: true, splits: 2},
	{vertices: 200, edges: 700, features: 9, density: 0.7, sparse: true, missing: true},
	{vertices: 220, edges: 700, features: 5, density: 1, missing: true, listed: true},
	{vertices: 500, edges: 4000, weighted: true, hub: true},
	{vertices: 600, edges: 30000, weighted: true, splits: 1},
	{vertices: 64, classes: 1},
	{vertices: 300, edges: 2000, features: 7, density: 1, classes: 5, splits: 2, targets: graph.YesOrNo},
	{vertices: 200, edges: 700, features: 9, density: 0.2, sparse: true, names: true, splits: 1, classes: 1, targets: graph.YesOrNo},
	{vertices: 300, edges: 2000, weighted: true, features: 7, density: 1, classes: 3, splits: 1, names: true, targets: graph.Numbers},
	{vertices: 120, edges: 300, classes: 70_000 / 120, targets: graph.Numbers},
}

// small makes a plan whose buckets, chunks and pieces are tiny, so that a tiny graph
// takes every way that a huge one would.
func small(p *plan) {
	p.records, p.chunk, p.perShard, p.laneBytes = 2000, 16, 4, 50
	p.blockShift = 5
}

func build(t *testing.T, m *memory, o Options, change func(*plan)) (*graph.Manifest, string) {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "shards")
	o.Scratch = t.TempDir()
	settled, err := o.settle(m)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := newPlan(m, settled)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(p)
	}
	manifest, err := execute(t.Context(), m, settled, p)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(o.Scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("scratch still holds %v, %v", left, err)
	}
	return manifest, o.Dir
}

func TestShardsHoldTheSource(t *testing.T) {
	for i, s := range shapes {
		for _, partitioner := range []string{random, stream, multilevel} {
			for variant := range 2 {
				o := Options{Partitioner: partitioner, Undirected: (i+variant)%2 == 1, Seed: uint64(i), Shards: min(s.vertices, 5)}
				var change func(*plan)
				if variant == 1 {
					o.DType, change = graph.BF16, small
				}
				t.Run(fmt.Sprintf("%d/%s/%d", i, partitioner, variant), func(t *testing.T) {
					m := s.source(uint64(i*10 + variant))
					manifest, dir := build(t, m, o, change)
					compare(t, expected(m, o), opened(t, dir, manifest))
					marked(t, dir, manifest)
				})
			}
		}
	}
}

// marked fails the test unless each file has the sums by which its first job recognises it.
func marked(t *testing.T, dir string, m *graph.Manifest) {
	t.Helper()
	for i, s := range m.Shards {
		path := filepath.Join(dir, graph.ShardFile(i))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want quicksum.Sums
		_, _ = want.Write(b)
		if got, ok := quicksum.Of(path, s.SHA256); !ok || got != want {
			t.Errorf("the sums of shard %d are %v (%v), not %v", i, got, ok, want)
		}
	}
}

// TestLongNames has names that are longer than the buffers they go through.
func TestLongNames(t *testing.T) {
	m := shape{vertices: 20, edges: 60, names: true}.source(1)
	*m.ids.Strings = graph.Strings{Offsets: []int64{0}}
	for v := range 20 {
		long := strings.Repeat(string(rune('a'+v)), copyBuffer/7*v+v)
		m.ids.Strings.Bytes = append(m.ids.Strings.Bytes, long...)
		m.ids.Strings.Offsets = append(m.ids.Strings.Offsets, int64(len(m.ids.Strings.Bytes)))
	}
	o := Options{Partitioner: random, Shards: 2}
	manifest, dir := build(t, m, o, nil)
	compare(t, expected(m, o), opened(t, dir, manifest))
}
