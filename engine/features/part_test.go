package features

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// bare leaves the features out of all shards but those that hold says.
func bare(shards []*graph.Shard, hold ...int) (some []*graph.Shard, stats []graph.FeatureStats) {
	for i, s := range shards {
		stats = append(stats, graph.StatsOf(s))
		if !slices.Contains(hold, i) {
			without := *s
			without.Dense, without.DenseBF16, without.Sparse = nil, nil, nil
			s = &without
		}
		some = append(some, s)
	}
	return some, stats
}

// carry brings the rows of vertices from one store to another, of the same form.
func carry(t *testing.T, from *Store, wire string, vertices []uint32) *Far {
	t.Helper()
	f, err := from.Form(wire)
	if err != nil {
		t.Fatal(err)
	}
	var bytes []byte
	for _, v := range vertices {
		before := len(bytes)
		bytes = from.Append(bytes, f, v)
		if n := len(bytes) - before; n > f.RowBytes() || n != f.RowBytes() && !f.Sparse() {
			t.Fatalf("a row of %d bytes, told to be %d", n, f.RowBytes())
		}
	}
	var far Far
	if !f.Sparse() {
		room := far.Room(f, len(vertices))
		if copy(room, bytes) != len(bytes) || len(room) != len(bytes) {
			t.Fatalf("room of %d bytes for %d", len(room), len(bytes))
		}
		return &far
	}
	far.Clear(f)
	if n, err := f.Count(bytes, len(vertices)); err != nil || n != len(vertices) {
		t.Fatalf("%d rows of %d: %v", n, len(vertices), err)
	}
	if err := far.Take(f, bytes); err != nil {
		t.Fatal(err)
	}
	return &far
}

// TestRowsOfOthers: a store that has a part comes to the same rows as one that has all,
// with those that are missing from a third.
func TestRowsOfOthers(t *testing.T) {
	places := []uint32{9, 10, 0, 3, 12, 11, 8, 2} // 10 is the first beyond the graph
	for _, sparse := range []bool{false, true} {
		for _, dtype := range []graph.DType{graph.F32, graph.BF16} {
			for _, value := range []func(*rand.Rand) float32{one, any5} {
				shards := cut(some(10, 7, 0.6, value), sparse, dtype, 4, 4, 5, 8, 10)
				for _, how := range Hows {
					whole, err := Open(shards, how)
					if err != nil {
						t.Fatal(err)
					}
					one, stats := bare(shards, 0, 4)
					part, err := OpenPart(one, stats, how)
					if err != nil {
						t.Fatal(err)
					}
					other, stats := bare(shards, 2, 3)
					owner, err := OpenPart(other, stats, how)
					if err != nil {
						t.Fatal(err)
					}
					if part.How() != whole.How() || part.Sparse() != sparse || part.Vertices() != 10 {
						t.Fatalf("%s: %s, not %s", how, part.How(), whole.How())
					}
					for v := range uint32(10) {
						if part.Has(v) != (v < 4 || v >= 8) || owner.Has(v) != (v >= 4 && v < 8) || !whole.Has(v) {
							t.Errorf("vertex %d: here %v, at its owner %v, on all %v", v, part.Has(v), owner.Has(v), whole.Has(v))
						}
					}
					far := carry(t, owner, "", []uint32{5, 7, 4})
					got := readFar(t, part, places, far)
					if want := read(t, whole, []uint32{9, 5, 0, 3, 4, 7, 8, 2}); !same(got, want) {
						t.Fatalf("sparse %v, %s, %s: %v, not %v", sparse, dtype, how, got, want)
					}
				}
			}
		}
	}
}

func same(a, b [][]float64) bool {
	return slices.EqualFunc(a, b, func(x, y []float64) bool { return slices.Equal(x, y) })
}

// TestEmptyFar: a Far that has no rows changes nothing, on a device that checks what it
// is given.
func TestEmptyFar(t *testing.T) {
	shards, stats := bare(cut(some(10, 7, 0.6, any5), false, graph.F32, 4, 10), 0)
	s, err := OpenPart(shards, stats, "row")
	if err != nil {
		t.Fatal(err)
	}
	d := cpu.New(1)
	defer d.Close()
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	places := []uint32{2, 0, 3}
	for _, far := range []*Far{{}, {Kept: &Far{}}} {
		y := a.Alloc(tensor.F32, len(places), 7)
		s.Dense(d, a, y, places, far)
		got := make([]float64, len(places)*7)
		d.Read(got, y)
		if want := slices.Concat(read(t, s, places)...); !near(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
	}
}

// near says whether numbers are the same but for what F32 rounds away.
func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-6 })
}

// TestNoShards: a node that holds none knows what rows are like.
func TestNoShards(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		shards := cut(some(60, 40, 0.02, one), sparse, graph.F32, 20, 60)
		none, stats := bare(shards)
		s, err := OpenPart(none, stats, "auto")
		if err != nil || s.How() != "row" || s.Sparse() != sparse || s.Has(0) || s.Has(59) || s.Bytes() != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		whole, err := Open(shards, "auto")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := readFar(t, s, []uint32{61, 60}, carry(t, whole, "", []uint32{4, 33})), read(t, whole, []uint32{33, 4}); !same(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		if _, err := Open(none, "none"); err == nil || !strings.Contains(err.Error(), "not here") {
			t.Error(err)
		}
	}
}

// TestForms: what a row takes, by how it is stored, scaled and sent.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		sparse    bool
		dtype     graph.DType
		how, wire string
		bytes     int // of 7 columns
	}{
		{false, graph.F32, "none", "", 28},
		{false, graph.F32, "row", "", 32},
		{false, graph.F32, "none", "bf16", 14},
		{false, graph.F32, "row", "bf16", 20},
		{false, graph.F32, "binary", "", 14},
		{false, graph.F32, "binary-row", "", 20},
		{false, graph.BF16, "none", "", 14},
		{false, graph.BF16, "row", "", 20},
		{false, graph.BF16, "none", "bf16", 14},
		{true, graph.F32, "none", "bf16", 4 + 7*6},
		{true, graph.BF16, "row", "", 8 + 7*4},
		{true, graph.BF16, "binary", "", 4 + 7*2},
		{true, graph.F32, "binary-row", "", 8 + 7*2},
	} {
		s, err := Open(cut(some(10, 7, 0.6, any5), c.sparse, c.dtype, 10), c.how)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Form(c.wire)
		if err != nil || f.RowBytes() != c.bytes {
			t.Errorf("%+v: %d bytes, %v", c, f.RowBytes(), err)
		}
		// any5 is exact in halves.
		vertices := []uint32{9, 1, 3, 4}
		if got, want := readFar(t, s, []uint32{10, 11, 12, 13}, carry(t, s, c.wire, vertices)), read(t, s, vertices); !same(got, want) {
			t.Errorf("%+v: %v, not %v", c, got, want)
		}
	}
}

// TestManyColumns: columns beyond 16 bits take more, and come as they are.
func TestManyColumns(t *testing.T) {
	for columns, bytes := range map[int]int{1 << 16: 4 + 3*6, 1<<16 + 1: 4 + 3*8} {
		at := []int32{0, 7, int32(columns) - 1}
		shard := &graph.Shard{
			Shards: 1, Vertices: 1, Total: 1, Features: columns, DType: graph.F32,
			Sparse: &graph.SparseRows{Indptr: []int64{0, 3}, Columns: at, Values: []float32{1, 2, 3}},
		}
		s, err := Open([]*graph.Shard{shard}, "none")
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Form("")
		if n := len(s.Append(nil, f, 0)); err != nil || n != bytes {
			t.Errorf("%d columns: %d bytes, %v", columns, n, err)
		}
		far := carry(t, s, "", []uint32{0})
		if !slices.Equal(far.Sparse.Indices, at) || !slices.Equal(far.Sparse.Values, []float32{1, 2, 3}) {
			t.Errorf("%d columns: %v", columns, far.Sparse)
		}
	}
}

func TestWires(t *testing.T) {
	s, err := Open(cut(some(10, 7, 0.6, any5), false, graph.F32, 10), "none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Form("f16"); err == nil || !strings.Contains(err.Error(), `"f16"`) {
		t.Error(err)
	}
}

// TestRounding is that to the nearest, to the even one of two.
func TestRounding(t *testing.T) {
	row := []float32{1 + 1.0/256, 1 + 3.0/256, 1 + 1.1/256, -7.3}
	s, err := Open(cut([][]float32{row}, false, graph.F32, 1), "none")
	if err != nil {
		t.Fatal(err)
	}
	got := carry(t, s, "bf16", []uint32{0}).Dense.BF16()
	if want := []uint16{0x3f80, 0x3f82, 0x3f81, 0xc0ea}; !slices.Equal(got, want) {
		t.Errorf("%x, not %x", got, want)
	}
}

// TestCodes: rows that do not mean the same have other codes.
func TestCodes(t *testing.T) {
	seen := map[uint32]Form{}
	for _, sparse := range []bool{false, true} {
		for _, dtype := range []graph.DType{graph.F32, graph.BF16} {
			for _, how := range Hows[1:] {
				for _, wire := range []string{"bf16", ""} {
					s, err := Open(cut(some(10, 7, 0.6, any5), sparse, dtype, 10), how)
					if err != nil {
						t.Fatal(err)
					}
					f, err := s.Form(wire)
					if err != nil {
						t.Fatal(err)
					}
					if known, ok := seen[f.Code()]; ok && known != f {
						t.Errorf("%+v and %+v are both %#x", known, f, f.Code())
					}
					seen[f.Code()] = f
				}
			}
		}
	}
	if len(seen) != 14 {
		t.Errorf("%d codes", len(seen))
	}
}

func TestStatsThatDoNotFit(t *testing.T) {
	shards, stats := bare(cut(some(10, 3, 1, one), false, graph.F32, 4, 7, 10), 1)
	if _, err := OpenPart(shards, stats[:2], "none"); err == nil || !strings.Contains(err.Error(), "known of 2") {
		t.Error(err)
	}
	stats[2].Sparse = true
	if _, err := OpenPart(shards, stats, "none"); err == nil || !strings.Contains(err.Error(), "shard 2") {
		t.Error(err)
	}
	stats[0].Sparse, stats[1].Sparse = true, true
	if _, err := OpenPart(shards, stats, "none"); err == nil || !strings.Contains(err.Error(), "shard 1") {
		t.Error(err)
	}
}

// FuzzTake: what is taken of any bytes are rows that can be read.
func FuzzTake(f *testing.F) {
	var stores []*Store
	for _, dtype := range []graph.DType{graph.F32, graph.BF16} {
		for _, how := range []string{"none", "row", "binary", "binary-row"} {
			shards, stats := bare(cut(some(10, 7, 0.6, any5), true, dtype, 4, 10), 0)
			s, err := OpenPart(shards, stats, how)
			if err != nil {
				f.Fatal(err)
			}
			form, err := s.Form("")
			if err != nil {
				f.Fatal(err)
			}
			f.Add(s.Append(s.Append(nil, form, 2), form, 3))
			stores = append(stores, s)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range stores {
			form, err := s.Form("")
			if err != nil {
				t.Fatal(err)
			}
			const most = 5
			n, err := form.Count(b, most)
			if err != nil {
				continue
			}
			var far Far
			far.Clear(form)
			if far.Take(form, b) != nil {
				continue
			}
			var places []uint32
			for i := range n {
				places = append(places, uint32(10+i))
			}
			var r Rows
			s.Fill(&r, places, true, &far)
			if n > most || far.Sparse.Rows != n || r.Entries() != len(r.Indices) || r.Values != nil && len(r.Values) != len(r.Indices) {
				t.Fatalf("%d rows: %+v", n, r.CSR)
			}
		}
	})
}
