package graph

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// together is a skeleton's bytes as they arrive, at a place that need not be aligned.
func together(t testing.TB, k *Skeleton, at int) []byte {
	t.Helper()
	parts, err := k.Parts()
	if err != nil {
		t.Fatal(err)
	}
	return append(make([]byte, at), bytes.Join(parts, nil)...)[at:]
}

func TestSkeletonsComeBack(t *testing.T) {
	unlabelled := two()
	unlabelled.drop("labels")
	unlabelled.drop("splits")
	empty := two()
	empty.meta["vertices"] = "0"
	empty.tensors = []tensor{
		{"indptr", safetensors.I64, []int64{1}, []int64{0}},
		{"original_ids", safetensors.I64, []int64{0}, []int64{}},
		{"indices", safetensors.I32, []int64{0}, []int32{}},
		{"features", safetensors.F32, []int64{0, 3}, []float32{}},
		{"splits", safetensors.U8, []int64{3, 0}, []uint8{}},
	}
	dense := two()
	dense.meta["dtype"] = "bf16"
	dense.tensors[5] = tensor{"features", safetensors.BF16, []int64{2, 3}, []uint16{0, 0x3f80, 0, 0x8000, 0x3f80, 0}}
	described, half := two(), two()
	described.describe(2)
	half.meta["dtype"] = "bf16"
	half.tensors[5] = dense.tensors[5]
	half.describe(3)
	empty.describe(1)
	for name, c := range map[string]*content{"edges with features": described, "and in bf16": half, "f32": two(), "bf16": dense, "sparse": sparse(), "unlabelled": unlabelled, "empty": empty} {
		s, err := OpenShard(write(t, c.bytes(t)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for at := range 9 {
			for _, edges := range []bool{false, true} {
				k := NewSkeleton(s, StatsOf(s), edges)
				labels := at%3 != 0
				if !labels {
					k.Bare(SeedsOf(s, 1))
				}
				b := together(t, k, at)
				if size := SizeOf(s).Size(edges, labels); int64(len(b)) > size || size > int64(len(b))+5000 {
					t.Errorf("%s: %d bytes, and %d were said", name, len(b), size)
				}
				got, err := ReadSkeleton(b)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got.Shard.file = nil
				if !reflect.DeepEqual(got, k) {
					t.Errorf("%s came back as %+v, %+v and not as %+v, %+v", name, got, got.Shard, k, k.Shard)
				}
				if (got.Shard.Indptr != nil) != edges || got.Shard.Dense != nil || got.Shard.DenseBF16 != nil || got.Shard.Sparse != nil || got.Edges != int64(len(s.Indices)) || got.Shard.Features != 3 {
					t.Errorf("%s: %+v", name, got.Shard)
				}
			}
		}
	}
}

func TestASkeletonIsClosed(t *testing.T) {
	s, err := OpenShard(write(t, two().bytes(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k, err := ReadSkeleton(together(t, NewSkeleton(s, StatsOf(s), true), 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Shard.Close(); err != nil {
		t.Error(err)
	}
}

func TestStatsOfFeatures(t *testing.T) {
	for _, c := range []struct {
		s    Shard
		want FeatureStats
	}{
		{Shard{}, FeatureStats{Ones: true}},
		{Shard{DenseRows: DenseRows{Dense: []float32{0, 1, 1, 0}}}, FeatureStats{Ones: true, Entries: 2}},
		{Shard{DenseRows: DenseRows{Dense: []float32{0, 1, 2, 1}}}, FeatureStats{Entries: 1}},
		{Shard{DenseRows: DenseRows{DenseBF16: []uint16{0, 0x8000, oneBF16}}}, FeatureStats{Ones: true, Entries: 1}},
		{Shard{DenseRows: DenseRows{DenseBF16: []uint16{oneBF16, oneBF16 | 0x8000, oneBF16}}}, FeatureStats{Entries: 1}},
		{Shard{Sparse: &SparseRows{Columns: make([]int32, 3), Values: []float32{1, 1, 1}}}, FeatureStats{Sparse: true, Ones: true, Entries: 3}},
		{Shard{Sparse: &SparseRows{Columns: make([]int32, 3), Values: []float32{1, 0, 1}}}, FeatureStats{Sparse: true, Entries: 3}},
		{Shard{Sparse: &SparseRows{Columns: make([]int32, 2), ValuesBF16: []uint16{oneBF16, oneBF16}}}, FeatureStats{Sparse: true, Ones: true, Entries: 2}},
		{Shard{Sparse: &SparseRows{Columns: make([]int32, 2), ValuesBF16: []uint16{oneBF16, 1}}}, FeatureStats{Sparse: true, Entries: 2}},
	} {
		if got := StatsOf(&c.s); got != c.want {
			t.Errorf("%+v has %+v and not %+v", c.s, got, c.want)
		}
	}
}

// bone is a skeleton, to be made wrong: without edges, and with all that may be in one.
func bone() *content {
	c := two()
	maps.Copy(c.meta, map[string]string{"format": SkeletonFormat, "edges": "3", "sparse": "false", "ones": "true", "entries": "6"})
	c.tensors = []tensor{
		{"labels", safetensors.I32, []int64{2}, []int32{-1, 1}},
		{"splits", safetensors.U8, []int64{2, 2}, []uint8{0, 1, 2, 3}},
	}
	return c
}

// edged is one with edges.
func edged() *content {
	c := bone()
	c.tensors = slices.DeleteFunc(two().tensors, func(t tensor) bool {
		return strings.HasPrefix(t.name, "original") || t.name == "features"
	})
	return c
}

// seeded is one without labels and marks.
func seeded() *content {
	c := bone()
	c.meta["seeds"] = "1,0,0;0,1,1"
	c.tensors = []tensor{{"training", safetensors.I64, []int64{1}, []int64{2}}}
	return c
}

// gapped is seeded with gaps in place of bits.
func gapped() *content {
	c := seeded()
	c.tensors = []tensor{{"gaps", safetensors.U8, []int64{1}, []uint8{1}}}
	return c
}

var wrongSkeletons = []struct {
	want   string
	of     func() *content
	change func(*content)
}{
	{`its format is "hopmesh-shard/1"`, bone, func(c *content) { c.meta["format"] = ShardFormat }},
	{`has "x" for vertices`, bone, func(c *content) { c.meta["vertices"] = "x" }},
	{"with 2 vertices from 9 of 10", bone, func(c *content) { c.meta["first_vertex"] = "9" }},
	{`has "21" for edges`, bone, func(c *content) { c.meta["edges"] = "21" }},
	{`has "41" for edges, which is no number from 0 to 40`, bone, func(c *content) { c.meta["relations"], c.meta["edges"] = "2", "41" }},
	{`has "-1" for edges`, bone, func(c *content) { c.meta["edges"] = "-1" }},
	{`has "7" for entries`, bone, func(c *content) { c.meta["entries"] = "7" }},
	{`has "perhaps" for ones`, bone, func(c *content) { c.meta["ones"] = "perhaps" }},
	{`has "" for sparse`, bone, func(c *content) { delete(c.meta, "sparse") }},
	{"row 1 has the label 2 of 2", bone, func(c *content) { c.set("labels", []int32{0, 2}, 2) }},
	{"unknown mark 4", bone, func(c *content) { c.set("splits", []uint8{0, 0, 0, 4}, 2, 2) }},
	{"labels or marks, and seeds", bone, func(c *content) { c.tensors = append(seeded().tensors, c.tensors...) }},
	{`"gaps" has a row beyond`, gapped, func(c *content) { c.set("gaps", []uint8{2}, 1) }},
	{`"gaps" has a row beyond`, gapped, func(c *content) { c.set("gaps", []uint8{0, 1}, 2) }},
	{`"gaps" has a row beyond`, gapped, func(c *content) { c.set("gaps", []uint8{0x80}, 1) }},
	{`"gaps" has the shape [1 1]`, gapped, func(c *content) { c.set("gaps", []uint8{1}, 1, 1) }},
	{`"training" has bits beyond`, seeded, func(c *content) { c.set("training", []int64{4}, 1) }},
	{`"training" has the shape [2]`, seeded, func(c *content) { c.set("training", []int64{0, 0}, 2) }},
	{`has "1,0" for a split's counts`, seeded, func(c *content) { c.meta["seeds"] = "1,0" }},
	{`has "1,0,-1" for a split's counts`, seeded, func(c *content) { c.meta["seeds"] = "1,0,0;1,0,-1" }},
	{`has "1,1,1" for a split's counts of 2 vertices`, seeded, func(c *content) { c.meta["seeds"] = "1,1,1" }},
	{"has 1025 splits", seeded, func(c *content) { c.meta["seeds"] = strings.Repeat("0,0,0;", 1024) + "0,0,0" }},
	{`tells of 2 edges, and it has 3`, edged, func(c *content) { c.meta["edges"] = "2" }},
	{`no tensor "indices"`, edged, func(c *content) { c.drop("indices") }},
	{`"indptr" does not rise`, edged, func(c *content) { c.set("indptr", []int64{0, 4, 3}, 3) }},
	{`"indices" has 10 in row 0`, edged, func(c *content) { c.set("indices", []int32{0, 10, 5}, 3) }},
	{`"weights" has the shape [2]`, edged, func(c *content) { c.set("weights", []float32{1, 2}, 2) }},
}

func TestWrongSkeletonsAreRefused(t *testing.T) {
	for _, good := range []func() *content{bone, edged, seeded, gapped} {
		if _, err := ReadSkeleton(good().bytes(t)); err != nil {
			t.Error(err)
		}
	}
	for _, c := range wrongSkeletons {
		k := c.of()
		c.change(k)
		if _, err := ReadSkeleton(k.bytes(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, and %q was expected", err, c.want)
		}
	}
	b := edged().bytes(t)
	for n := range b {
		if _, err := ReadSkeleton(b[:n]); err == nil {
			t.Fatalf("%d bytes of %d are taken", n, len(b))
		}
	}
}

func FuzzReadSkeleton(f *testing.F) {
	f.Add(bone().bytes(f))
	f.Add(edged().bytes(f))
	described := edged()
	described.describe(2)
	f.Add(described.bytes(f))
	f.Add(seeded().bytes(f))
	f.Add(gapped().bytes(f))
	for _, c := range wrongSkeletons {
		k := c.of()
		c.change(k)
		f.Add(k.bytes(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ReadSkeleton(b)
		if err != nil {
			return
		}
		s := k.Shard
		for row := range s.Vertices {
			if s.Indptr != nil {
				for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
					if uint32(s.Indices[e]) >= s.Total {
						t.Fatal("an edge from nowhere")
					}
					if s.Weights != nil {
						_ = s.Weights[e]
					}
					if s.EdgeRows.Columns > 0 {
						_ = s.EdgeRows.Append(nil, e)
					}
				}
			}
			if s.Labels != nil && int(s.Labels[row]) >= s.Classes {
				t.Fatal("a label of no class")
			}
			for _, marks := range s.Marks {
				_ = marks[row]
			}
		}
		if k.Seeds != nil {
			last := -1
			for row := range k.Seeds.Training.All() {
				if row <= last || row >= s.Vertices {
					t.Fatalf("row %d after %d of %d", row, last, s.Vertices)
				}
				last = row
			}
		}
		// What is taken can be told further.
		again, err := ReadSkeleton(together(t, k, 0))
		if err != nil {
			t.Fatal(err)
		}
		again.Shard.file, s.file = nil, nil
		if !bytes.Equal(together(t, again, 0), together(t, k, 0)) {
			t.Fatal("another skeleton")
		}
	})
}
