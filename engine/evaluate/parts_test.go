package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// hubs returns the shards of a graph of which some vertices have edges from all others, and
// the rest from a few.
func hubs(vertices, hubs int) []*graph.Shard {
	r := rand.New(rand.NewPCG(1, 2))
	const features, classes, shards = 12, 3, 2
	var all []*graph.Shard
	each := vertices / shards
	for n := range shards {
		s := &graph.Shard{
			Number: n, Shards: shards, First: uint32(n * each), Vertices: each, Total: uint32(vertices), Features: features, Classes: classes, DType: graph.F32,
			Indptr: []int64{0}, Labels: make([]int32, each), Marks: [][]graph.Mark{make([]graph.Mark, each)},
		}
		for row := range each {
			v := int(s.First) + row
			for range features {
				s.Dense = append(s.Dense, float32(r.NormFloat64()))
			}
			s.Labels[row], s.Marks[0][row] = int32(v%classes), graph.Mark(1+v%3)
			if v%each < hubs {
				for u := range vertices {
					s.Indices = append(s.Indices, int32(u))
				}
			} else {
				of := []int32{int32(r.IntN(vertices)), int32(r.IntN(vertices)), int32(r.IntN(vertices))}
				slices.Sort(of)
				s.Indices = append(s.Indices, slices.Compact(of)...)
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		all = append(all, s)
	}
	return all
}

// What evaluation needs at least does not grow with the degrees of vertices, nor with the
// graph, and it is enough.
func TestLeastMemoryOfAnyDegrees(t *testing.T) {
	const vertices = 6 * chunkRows
	few, many, more := hubs(vertices, 0), hubs(vertices, 100), hubs(2*vertices, 0)
	for name, spec := range evalSpecs() {
		if name == "mlp" {
			continue
		}
		of := setup{spec: spec, metric: task.ROCAUC, dir: t.TempDir()}
		ring, star, large := of.alone(t, few), of.alone(t, many), of.alone(t, more)
		// The entries of a part are in memory as long as they are few.
		if ring.Least()+leastEntries*8 < star.Least() || large.Least() > ring.Least()+200<<10 || ring.Least() > 12<<20 {
			t.Errorf("%s: at least %d bytes, with large degrees %d, of twice as many vertices %d", name, ring.Least(), star.Least(), large.Least())
		}
		want, err := star.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !star.planned.whole {
			t.Fatalf("%s: %+v", name, star.planned)
		}
		star.Limit(star.Least())
		got, err := star.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p := star.planned; !p.inFile || p.entries >= star.mostEntries(p.rows) || p.rows != chunkRows {
			t.Errorf("%s: %+v, where a part has %d entries", name, p, star.mostEntries(p.rows))
		}
		if got.Train != want.Train || got.Val != want.Val || got.Test != want.Test {
			t.Errorf("%s: %+v, and in parts %+v", name, want, got)
		}
	}
}

// Blocks are those of a sampler that takes all neighbours, wherever their entries lie.
func TestWovenBlocks(t *testing.T) {
	shards := hubs(3*chunkRows, 20)
	weighted := hubs(3*chunkRows, 20)
	for _, s := range weighted {
		for i := range s.Indices {
			s.Weights = append(s.Weights, 0.25+float32(i%7))
		}
	}
	dir := t.TempDir()
	for _, of := range [][]*graph.Shard{shards, weighted} {
		m := setup{spec: evalSpecs()["gcn"], metric: task.Accuracy}.alone(t, of)
		for _, form := range []sample.Form{
			{}, {SelfLoops: true}, {Weighting: sample.Sums}, {SelfLoops: true, Weighting: sample.Sums}, {Weighting: sample.Symmetric}, {SelfLoops: true, Weighting: sample.Symmetric},
		} {
			w := &weaver{halo: m.halo, form: form}
			w.open(m.data.Topology)
			s := sample.New(m.data.Topology, sample.Options{Form: form})
			for _, part := range [][2]int{{0, chunkRows}, {chunkRows, 2 * chunkRows}, {0, 3 * chunkRows}, {3*chunkRows - 7, 7}} {
				var want sample.Block
				if err := s.Part(&want, part[0], part[1]); err != nil {
					t.Fatal(err)
				}
				from := want.Indptr[0]
				values := want.Values
				if values != nil {
					values = values[from:want.Indptr[want.Rows]]
				}
				for _, room := range []int{1 << 30, 100} {
					got, err := w.weave(part[0], part[1], min(room, want.Entries()), dir)
					if err != nil {
						t.Fatal(err)
					}
					if got.Rows != want.Rows || got.Cols != want.Cols || got.Own != want.Own || got.Entries() != want.Entries() {
						t.Fatalf("%+v, %v: %d x %d, own %d, %d entries", form, part, got.Rows, got.Cols, got.Own, got.Entries())
					}
					at := got.Indptr[0]
					if !slices.Equal(got.Indices[at:at+int64(got.Entries())], want.Indices[from:from+int64(want.Entries())]) {
						t.Errorf("%+v, %v, room %d: other columns", form, part, room)
					}
					for i := range got.Entries() {
						x, y := float32(1), float32(1)
						if got.Values != nil {
							x = got.Values[i]
						}
						if values != nil {
							y = values[i]
						}
						if math.Float32bits(x) != math.Float32bits(y) {
							t.Fatalf("%+v, %v, room %d: entry %d has the value %g and not %g", form, part, room, i, x, y)
						}
					}
					if in := w.file != nil; room == 100 && got.Entries() > 100 && !in && got.Indptr[0] == 0 && form != (sample.Form{}) {
						t.Errorf("%+v, %v: more than there is room for lies in memory", form, part)
					}
				}
			}
			if err := w.drop(); err != nil {
				t.Error(err)
			}
		}
	}
}

// However much memory there is, and so however large parts are, bits are the same.
func TestPartsOfEachSize(t *testing.T) {
	shards := enginetest.Communities(t, 5*mostChunks*chunkRows)
	spec := nn.Defaults("gcn")
	spec.Layers, spec.Hidden = 2, 64
	m := setup{spec: spec, metric: task.ROCAUC, dir: t.TempDir()}.alone(t, shards)
	want, err := m.evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for memory := m.Least(); memory < 3*m.wholeBytes(2)/2; memory += memory / 6 {
		m.Limit(memory)
		got, err := m.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Train != want.Train || got.Val != want.Val || got.Test != want.Test {
			t.Errorf("with %d bytes: %+v, and not %+v", memory, got, want)
		}
		if taken := m.beyond(m.planned); taken > memory {
			t.Errorf("of %d bytes it takes %d", memory, taken)
		}
		how := fmt.Sprint(m.planned.rows)
		switch {
		case m.planned.whole:
			how = "whole"
		case m.planned.inFile:
			how += " in files"
		}
		seen[how] = true
	}
	for _, rows := range []int{1, 2, 4, 8, 16} {
		if !seen[fmt.Sprintf("%d in files", rows*chunkRows)] {
			t.Errorf("no parts of %d chunks: %v", rows, seen)
		}
	}
	if !seen["whole"] || len(seen) < 7 {
		t.Errorf("evaluated were only %v", seen)
	}
}

// What runs only once takes no memory to be faster the next time, and has the same bits.
func TestARunThatIsTheOnlyOne(t *testing.T) {
	before := mostOnce
	defer func() { mostOnce = before }()
	shards := enginetest.Communities(t, 2*mostChunks*chunkRows)
	m := setup{spec: evalSpecs()["gcn"], metric: task.Accuracy, dir: t.TempDir()}.alone(t, shards)
	want, err := m.evaluate(t.Context())
	if err != nil || !m.planned.whole {
		t.Fatalf("%+v, %v", m.planned, err)
	}
	m.Once()
	if p := m.plan(m.all()); !p.whole {
		t.Errorf("a little is %+v", p)
	}
	mostOnce = 0
	got, err := m.evaluate(t.Context())
	if err != nil || m.planned.whole || m.planned.inFile || m.beyond(m.planned) >= m.wholeBytes(m.all()) {
		t.Fatalf("%+v, %v", m.planned, err)
	}
	if got.Train != want.Train || got.Val != want.Val || got.Test != want.Test {
		t.Errorf("%+v and not %+v", got, want)
	}
	for name, spec := range evalSpecs() {
		of := setup{spec: spec, metric: task.Accuracy, dir: t.TempDir()}
		want, err := of.alone(t, shards).evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := newMesh(3, enginetest.Uneven(len(shards), 3))
		all := m.start(t, of, shards)
		for _, of := range all {
			of.Once()
		}
		same(t, name, m.evaluated(t, all, 1), want)
		for _, of := range all {
			parts := of.inParts(of.all(), false)
			if of.scratch.kept != nil || of.planned.whole && of.beyond(parts) < of.beyond(of.planned) {
				t.Errorf("%s: %+v, features of others are kept: %v", name, of.planned, of.scratch.kept != nil)
			}
		}
	}
}

// A layer that can't be divided is run with the rows of its sources, to the same bits.
func TestPartsThatAreBrought(t *testing.T) {
	shards := enginetest.Communities(t, 6*chunkRows)
	for name, spec := range evalSpecs() {
		if name == "mlp" {
			continue
		}
		m := setup{spec: spec, metric: task.Accuracy, dir: t.TempDir()}.alone(t, shards)
		want, err := m.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		clear(m.view.divided)
		for _, memory := range []uint64{m.wholeBytes(m.all()) - 1, m.Least(), 0} {
			m.Limit(memory)
			got, err := m.evaluate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !m.planned.brought || got.Train != want.Train || got.Val != want.Val || got.Test != want.Test {
				t.Errorf("%s, %+v: %+v and not %+v", name, m.planned, got, want)
			}
		}
	}
}

// A disk without enough room is found before anything is computed, and a full one is an
// error with a sentence.
func TestADiskThatIsTooSmall(t *testing.T) {
	shards := enginetest.Communities(t, 3000)
	m := setup{spec: evalSpecs()["gcn"], metric: task.Accuracy, dir: t.TempDir()}.alone(t, shards)
	m.Limit(m.Least())
	needs := m.Disk(m.Least())
	m.folder.free = func(string) (uint64, bool, error) { return needs - 1, false, nil }
	parts := 0
	err := m.Run(t.Context(), m.all(), func(int, tensor.Matrix) error { parts++; return nil })
	if err == nil || !strings.Contains(err.Error(), "free some space there, or allow more memory with {agent.memory}") || parts > 0 {
		t.Errorf("%v after %d parts", err, parts)
	}
	if err := m.Open(m.device, m.work, Options{Memory: m.Least(), Dir: m.folder.dir}); err == nil {
		t.Error("it opens without room for its files")
	}
	m.folder.free = func(string) (uint64, bool, error) { return needs, false, nil }
	if _, err := m.evaluate(t.Context()); err != nil {
		t.Error(err)
	}
	// Files in a folder that is memory are memory.
	least := m.Least()
	m.folder.free = func(string) (uint64, bool, error) { return 1 << 40, true, nil }
	if in := m.Least(); in != least+needs {
		t.Errorf("at least %d bytes on a disk, %d in memory, with files of %d", least, in, needs)
	}
	if _, err := newTable(m.device, 10, 10, true, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "free some space there") {
		t.Error(err)
	}
}
