package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// digests are the files' SHA-256s in a row.
func digests(m *graph.Manifest) string {
	var all []string
	for _, s := range m.Shards {
		all = append(all, s.SHA256)
	}
	return strings.Join(all, " ")
}

func TestManifestCounts(t *testing.T) {
	s := shape{vertices: 300, edges: 3000, features: 2, density: 1, classes: 5, splits: 2}
	m := s.source(9)
	manifest, _ := build(t, m, Options{Partitioner: random, Shards: 4, Seed: 8}, nil)
	var edges, cut, vertices, largest, training, trainingLargest, edgesLargest uint64
	for _, s := range manifest.Shards {
		edges, cut, vertices, training = edges+s.Edges, cut+s.Cut, vertices+s.Vertices, training+s.Training
		largest, edgesLargest, trainingLargest = max(largest, s.Vertices), max(edgesLargest, s.Edges), max(trainingLargest, s.Training)
	}
	if manifest.Edges != edges || manifest.EdgeCut != cut || manifest.Vertices != vertices || cut == 0 || training == 0 {
		t.Errorf("the sums are %d, %d and %d in %+v", edges, cut, vertices, manifest)
	}
	balance := func(largest, total uint64) float64 { return float64(largest) * 4 / float64(total) }
	if manifest.Balance != balance(largest, vertices) || manifest.BalanceEdges != balance(edgesLargest, edges) || manifest.BalanceTraining != balance(trainingLargest, training) {
		t.Errorf("balances are %v, %v, %v", manifest.Balance, manifest.BalanceEdges, manifest.BalanceTraining)
	}
	var want []graph.SplitInfo
	for _, marks := range m.splits {
		var info graph.SplitInfo
		for _, mark := range marks {
			switch mark {
			case graph.Train:
				info.Train++
			case graph.Validation:
				info.Val++
			case graph.Test:
				info.Test++
			}
		}
		want = append(want, info)
	}
	if !slices.Equal(manifest.Splits, want) || manifest.Classes != 5 || manifest.Seed != 8 || manifest.Partitioner != random || !slices.Equal(manifest.Notes, m.Notes()) {
		t.Errorf("the manifest has %+v, and should have the splits %+v", manifest, want)
	}
	none, _ := build(t, shape{vertices: 10}.source(1), Options{Partitioner: random, Shards: 3}, nil)
	if none.BalanceEdges != 1 || none.BalanceTraining != 1 || none.Balance != 1.2 || none.Splits == nil {
		t.Errorf("a graph without edges has the manifest %+v", none)
	}
}

func TestShardsBySize(t *testing.T) {
	for vertices, want := range map[uint32]int{1: 1, 127: 1, 255: 1, 256: 2, 511: 2, 512: 4, 8191: 32, 8192: 64, 1 << 30: 64} {
		if got := defaultShards(vertices); got != want {
			t.Errorf("%d vertices are cut into %d shards, not %d", vertices, got, want)
		}
	}
}

// A broken source fails, or yields what does not fit.
type broken struct {
	*memory
	edges    func(yield func(graph.EdgeBatch) error) error
	features func(yield func(graph.FeatureBatch) error) error
}

func (b broken) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	if b.edges == nil {
		return b.memory.Edges(ctx, yield)
	}
	return b.edges(yield)
}

func (b broken) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	if b.features == nil {
		return b.memory.Features(ctx, yield)
	}
	return b.features(yield)
}

// nothingLeft fails if an import that did not succeed left anything.
func nothingLeft(t *testing.T, parent string) {
	t.Helper()
	left, err := os.ReadDir(parent)
	if err != nil || len(left) > 0 {
		t.Errorf("an import that failed left %v, %v", left, err)
	}
}

func TestFailuresAreSentencesAndLeaveNothing(t *testing.T) {
	s := shape{vertices: 300, edges: 2000, features: 4, density: 1, classes: 3, splits: 1}
	wide := shape{vertices: 100, edges: 100, features: 90, density: 0.05, sparse: true}
	batch := func(b graph.EdgeBatch) func(*memory) graph.Source {
		return func(m *memory) graph.Source {
			return broken{memory: m, edges: func(yield func(graph.EdgeBatch) error) error { return yield(b) }}
		}
	}
	rows := func(b graph.FeatureBatch) func(*memory) graph.Source {
		return func(m *memory) graph.Source {
			return broken{memory: m, features: func(yield func(graph.FeatureBatch) error) error { return yield(b) }}
		}
	}
	for _, c := range []struct {
		want    string
		shape   shape
		options Options
		change  func(*memory) graph.Source
	}{
		{want: `there is no partitioner "metis": choose one of auto, multilevel, stream, random`, options: Options{Partitioner: "metis"}},
		{want: `features cannot be stored as "f16": choose f32 or bf16`, options: Options{DType: "f16"}},
		{want: "300 vertices cannot be cut into 301 shards: choose fewer", options: Options{Shards: 301}},
		{want: "a graph is cut into 1 to 1024 shards, and not into 1025", options: Options{Shards: 1025}},
		{want: "a graph is cut into 1 to 1024 shards, and not into -1", options: Options{Shards: -1}},
		{want: "1.0 MiB: raise {dataset.memory} or use {dataset.partitioner} stream", options: Options{Partitioner: multilevel, Memory: 1 << 20}},
		{want: "1.0 MiB: raise {dataset.memory}", options: Options{Memory: 1 << 20}},
		{want: "the graph has no vertices", change: func(m *memory) graph.Source { m.meta.Vertices = 0; return m }},
		{want: "the graph has 2147483648 vertices, and 2147483647 are the most", change: func(m *memory) graph.Source { m.meta.Vertices = 1 << 31; return m }},
		{want: "free some or choose another folder", change: func(m *memory) graph.Source { m.meta.Edges = 1 << 45; return m }, options: Options{Partitioner: random, Memory: 1 << 40}},
		{want: "more than can be stored", change: func(m *memory) graph.Source { m.meta.Edges = 1 << 60; return m }},
		{want: "vertex 7 has the label 3, and there are 3 classes", change: func(m *memory) graph.Source { m.labels[7] = 3; return m }},
		{want: "the source has 1 labels for 300 vertices", change: func(m *memory) graph.Source { m.labels = m.labels[:1]; return m }},
		{want: "split 0 gives vertex 5 the unknown mark 4", change: func(m *memory) graph.Source { m.splits[0][5] = 4; return m }},
		{want: "split 0 marks 9 of 300 vertices", change: func(m *memory) graph.Source { m.splits[0] = m.splits[0][:9]; return m }},
		{want: "1025 splits, and 1024 are the most", change: func(m *memory) graph.Source {
			m.splits = slices.Repeat(m.splits[:1], 1025)
			return m
		}},
		{want: "2 ids for 300 vertices", change: func(m *memory) graph.Source { m.ids.Ints = []int64{1, 2}; return m }},
		{want: "names do not fit", change: func(m *memory) graph.Source { m.ids.Strings = &graph.Strings{Offsets: []int64{0}}; return m }},
		{want: "an edge leads from vertex 1 to 300, and there are 300 vertices", change: batch(graph.EdgeBatch{Src: []uint32{1}, Dst: []uint32{300}})},
		{want: "2 sources, 1 destinations", change: batch(graph.EdgeBatch{Src: []uint32{1, 2}, Dst: []uint32{3}})},
		{want: "features of vertex 300, and there are 300", change: rows(graph.FeatureBatch{First: 299, Dense: make([]float32, 8)})},
		{want: "features of vertex 400, and there are 300", change: rows(graph.FeatureBatch{Vertices: []uint32{400}, Dense: make([]float32, 4)})},
		{want: "5 features at once, and rows of 4", change: rows(graph.FeatureBatch{Dense: make([]float32, 5)})},
		{want: "2 rows of features for 1 vertices", change: rows(graph.FeatureBatch{Vertices: []uint32{4}, Dense: make([]float32, 8)})},
		{want: "sparse column 5 after 5, of 90", shape: wide, change: rows(graph.FeatureBatch{Indptr: []int64{0, 2}, Indices: []uint32{5, 5}, Values: []float32{1, 2}})},
		{want: "sparse column 90 after -1, of 90", shape: wide, change: rows(graph.FeatureBatch{Indptr: []int64{0, 1}, Indices: []uint32{90}, Values: []float32{1}})},
		{want: "do not fit each other", shape: wide, change: rows(graph.FeatureBatch{Indptr: []int64{0, 5}, Indices: []uint32{5}, Values: []float32{1}})},
		{want: "and yielded 0 before", shape: wide, change: func(m *memory) graph.Source {
			calls := 0
			return broken{memory: m, features: func(yield func(graph.FeatureBatch) error) error {
				if calls++; calls == 1 {
					return nil
				}
				return yield(graph.FeatureBatch{Indptr: []int64{0, 1}, Indices: []uint32{9}, Values: []float32{1}})
			}}
		}},
	} {
		for _, partitioner := range []string{random, stream} {
			if c.shape.vertices == 0 {
				c.shape = s
			}
			o := c.options
			if o.Partitioner == "" {
				o.Partitioner = partitioner
			}
			parent := t.TempDir()
			o.Dir, o.Scratch = filepath.Join(parent, "out"), filepath.Join(parent, "scratch")
			var src graph.Source = c.shape.source(1)
			if c.change != nil {
				src = c.change(src.(*memory))
			}
			_, err := Run(t.Context(), src, o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("with %s: %v, and %q was expected", partitioner, err, c.want)
			}
			nothingLeft(t, parent)
		}
	}
}

func TestWeightsThatCannotBeSummed(t *testing.T) {
	m := shape{vertices: 30, edges: 200, weighted: true}.source(1)
	var zero float32
	m.edges.Weights[77] = 1 / zero
	parent := t.TempDir()
	_, err := Run(t.Context(), m, Options{Dir: filepath.Join(parent, "out"), Partitioner: random})
	want := fmt.Sprintf("the edge from vertex %d to %d has the weight +Inf", m.edges.Src[77], m.edges.Dst[77])
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, and %q was expected", err, want)
	}
	nothingLeft(t, parent)
}

func TestFailuresOfTheSourceComeThrough(t *testing.T) {
	mine := errors.New("row 17 of edges.csv is no number")
	m := shape{vertices: 300, edges: 2000, features: 4, density: 1}.source(1)
	for _, src := range []broken{
		{memory: m, edges: func(func(graph.EdgeBatch) error) error { return mine }},
		{memory: m, features: func(func(graph.FeatureBatch) error) error { return mine }},
	} {
		parent := t.TempDir()
		if _, err := Run(t.Context(), src, Options{Dir: filepath.Join(parent, "out")}); !errors.Is(err, mine) {
			t.Errorf("%v came through", err)
		}
		nothingLeft(t, parent)
	}
}

func TestAFolderThatExistsStays(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), shapes[2].source(1), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "exists already: remove it or choose another") {
		t.Error(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestCancelledAtAnyMoment(t *testing.T) {
	s := shape{vertices: 400, edges: 4000, weighted: true, features: 20, density: 0.1, sparse: true, names: true}
	for _, partitioner := range []string{random, stream, multilevel} {
		stages := map[string]bool{}
		for moment := int64(1); ; moment++ {
			parent := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			var calls atomic.Int64
			step := func() {
				if calls.Add(1) == moment {
					cancel()
				}
			}
			m := s.source(2)
			m.batch = 200
			src := &watched{memory: m, step: step}
			o := Options{
				Dir: filepath.Join(parent, "out"), Scratch: filepath.Join(parent, "scratch"), Partitioner: partitioner,
				Report: func(p graph.Progress) { stages[p.Stage] = true; step() },
			}
			_, err := Run(ctx, src, o)
			cancel()
			if calls.Load() < moment {
				if err != nil {
					t.Error(err)
				}
				break
			}
			if !errors.Is(err, context.Canceled) && err != nil {
				t.Errorf("cancelled at moment %d: %v", moment, err)
			}
			if err != nil {
				nothingLeft(t, parent)
			}
		}
		if len(stages) < 5 {
			t.Errorf("reported were %v only", stages)
		}
	}
}

// A watched source tells when it is about to yield.
type watched struct {
	*memory
	step func()
}

func (w *watched) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	return w.memory.Edges(ctx, func(b graph.EdgeBatch) error { w.step(); return yield(b) })
}

func (w *watched) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	return w.memory.Features(ctx, func(b graph.FeatureBatch) error { w.step(); return yield(b) })
}

func TestAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &spool{file: full, disk: disk{folder: "/scratch", need: 5 << 30}}
	defer s.close()
	b := newBuckets[uint64](s, 3, 4)
	for range 3 {
		if err := b.put(1, 5); err != nil {
			t.Fatal(err)
		}
	}
	want := "the disk of /scratch is full: the import needs up to 5.0 GiB there: free some or choose another folder: "
	if err := b.put(1, 5); !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
	o := &output{file: full, disk: s.disk}
	if err := o.next([]byte("x")); !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
}

// TestWritesThatFail takes a shard's place in the middle of a run: making its file
// fails.
func TestWritesThatFail(t *testing.T) {
	for _, name := range []string{graph.ShardFile(0), graph.ShardFile(3)} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		o := Options{Dir: dir, Shards: 4, Partitioner: stream, Report: func(p graph.Progress) {
			if p.Stage == "reading edges" && p.Done == 0 {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}}
		if _, err := Run(t.Context(), shapes[2].source(1), o); !errors.Is(err, os.ErrExist) {
			t.Errorf("a shard file was overwritten: %v", err)
		}
		nothingLeft(t, parent)
	}
}

func TestAVertexTooLargeForTheMemory(t *testing.T) {
	m := shape{vertices: 300, edges: 4000, hub: true}.source(1)
	parent := t.TempDir()
	o, err := Options{Dir: filepath.Join(parent, "out"), Partitioner: random, Shards: 2}.settle(m)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := newPlan(m, o)
	if err != nil {
		t.Fatal(err)
	}
	p.records, p.most = 100, 100
	_, err = execute(t.Context(), m, o, p)
	if err == nil || !strings.Contains(err.Error(), "edges, and the memory holds 100 at once: raise {dataset.memory}") {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

func TestReportsAreFew(t *testing.T) {
	calls := 0
	r := &reporter{to: func(graph.Progress) { calls++ }}
	start := time.Now()
	r.begin("working", 1<<20, "edges")
	for range 1 << 20 {
		r.add(1)
	}
	r.share(0.5)
	if most := 3 + int(time.Since(start)/reportEvery); calls > most {
		t.Errorf("%d reports where %d are the most", calls, most)
	}
	if r.now.Done != 1<<19 {
		t.Errorf("half is %d", r.now.Done)
	}
}
