package graph

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// A tensor is one of a file that a test puts together.
type tensor struct {
	name  string
	dtype safetensors.DType
	shape []int64
	data  any
}

// A content is a whole shard file, to be made wrong.
type content struct {
	meta    map[string]string
	tensors []tensor
}

func (c *content) set(name string, data any, shape ...int64) {
	for i := range c.tensors {
		if c.tensors[i].name == name {
			c.tensors[i].data, c.tensors[i].shape = data, shape
		}
	}
}

func (c *content) drop(name string) {
	c.tensors = slices.DeleteFunc(c.tensors, func(t tensor) bool { return t.name == name })
}

func (c *content) bytes(t testing.TB) []byte {
	t.Helper()
	var list []safetensors.Tensor
	for _, x := range c.tensors {
		list = append(list, safetensors.Tensor{Name: x.name, DType: x.dtype, Shape: x.shape})
	}
	layout, err := safetensors.NewLayout(list, c.meta)
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.NewBuffer(layout.Header())
	for _, x := range c.tensors {
		if err := binary.Write(b, binary.LittleEndian, x.data); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// two is the second of three shards: two vertices of ten, from 4.
func two() *content {
	return &content{
		meta: map[string]string{
			"format": ShardFormat, "shard": "1", "shards": "3", "first_vertex": "4", "vertices": "2",
			"total_vertices": "10", "features": "3", "classes": "2", "dtype": "f32",
		},
		tensors: []tensor{
			{"indptr", safetensors.I64, []int64{3}, []int64{0, 2, 3}},
			{"original_ids.offsets", safetensors.I64, []int64{3}, []int64{0, 2, 5}},
			{"indices", safetensors.I32, []int64{3}, []int32{0, 9, 5}},
			{"weights", safetensors.F32, []int64{3}, []float32{1, 2, 3}},
			{"labels", safetensors.I32, []int64{2}, []int32{-1, 1}},
			{"features", safetensors.F32, []int64{2, 3}, []float32{1, 2, 3, 4, 5, 6}},
			{"splits", safetensors.U8, []int64{2, 2}, []uint8{0, 1, 2, 3}},
			{"original_ids.bytes", safetensors.U8, []int64{5}, []byte("abcde")},
		},
	}
}

// sparse is the same with sparse features of type BF16 and numbers for names.
func sparse() *content {
	c := two()
	c.meta["dtype"] = "bf16"
	c.tensors = []tensor{
		c.tensors[0],
		{"features.indptr", safetensors.I64, []int64{3}, []int64{0, 0, 2}},
		{"original_ids", safetensors.I64, []int64{2}, []int64{-7, 1 << 40}},
		c.tensors[2],
		{"features.indices", safetensors.I32, []int64{2}, []int32{0, 2}},
		{"features.values", safetensors.BF16, []int64{2}, []uint16{0x3f80, 0x4000}},
	}
	return c
}

func write(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ShardFile(1))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenShard(t *testing.T) {
	s, err := OpenShard(write(t, two().bytes(t)))
	if err != nil {
		t.Fatal(err)
	}
	if s.Number != 1 || s.Shards != 3 || s.First != 4 || s.Vertices != 2 || s.Total != 10 || s.Features != 3 || s.Classes != 2 || s.DType != F32 {
		t.Errorf("the shard says of itself: %+v", s)
	}
	if !slices.Equal(s.Indptr, []int64{0, 2, 3}) || !slices.Equal(s.Indices, []int32{0, 9, 5}) || !slices.Equal(s.Weights, []float32{1, 2, 3}) {
		t.Error(s.Indptr, s.Indices, s.Weights)
	}
	if !slices.Equal(s.Dense, []float32{1, 2, 3, 4, 5, 6}) || s.Sparse != nil || !slices.Equal(s.Labels, []int32{-1, 1}) {
		t.Error(s.Dense, s.Sparse, s.Labels)
	}
	if len(s.Marks) != 2 || !slices.Equal(s.Marks[0], []Mark{Unmarked, Train}) || !slices.Equal(s.Marks[1], []Mark{Validation, Test}) {
		t.Error(s.Marks)
	}
	if got := string(s.Originals.Append([]byte("x"), 1)); got != "xcde" {
		t.Error(got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	s, err = OpenShard(write(t, sparse().bytes(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if f := s.Sparse; s.DenseBF16 != nil || f == nil || !slices.Equal(f.Indptr, []int64{0, 0, 2}) || !slices.Equal(f.Columns, []int32{0, 2}) || !slices.Equal(f.ValuesBF16, []uint16{0x3f80, 0x4000}) {
		t.Error(s.Sparse)
	}
	if got := string(s.Originals.Append(nil, 0)); got != "-7" || s.Labels != nil || s.Marks != nil || s.Weights != nil {
		t.Error(got, s.Labels, s.Marks)
	}
}

// wrongShards are refused, by a part of the sentence.
var wrongShards = []struct {
	want   string
	of     func() *content
	change func(*content)
}{
	{`its format is "other"`, two, func(c *content) { c.meta["format"] = "other" }},
	{`its format is ""`, two, func(c *content) { c.meta = nil }},
	{`has "x" for vertices`, two, func(c *content) { c.meta["vertices"] = "x" }},
	{`has "-1" for first_vertex`, two, func(c *content) { c.meta["first_vertex"] = "-1" }},
	{`has "" for classes`, two, func(c *content) { delete(c.meta, "classes") }},
	{`has "1025" for shards`, two, func(c *content) { c.meta["shards"] = "1025" }},
	{`has "2147483648" for total_vertices`, two, func(c *content) { c.meta["total_vertices"] = "2147483648" }},
	{"shard 1 of 1,", two, func(c *content) { c.meta["shards"] = "1" }},
	{"with 2 vertices from 9 of 10", two, func(c *content) { c.meta["first_vertex"] = "9" }},
	{"with 2 vertices from 11 of 10", two, func(c *content) { c.meta["first_vertex"] = "11" }},
	{`unknown dtype "f16"`, two, func(c *content) { c.meta["dtype"] = "f16" }},
	{`no tensor "indptr"`, two, func(c *content) { c.drop("indptr") }},
	{`no tensor "indices"`, two, func(c *content) { c.drop("indices") }},
	{`no tensor "features"`, two, func(c *content) { c.drop("features") }},
	{`no tensor "original_ids"`, sparse, func(c *content) { c.drop("original_ids") }},
	{`no tensor "original_ids.bytes"`, two, func(c *content) { c.drop("original_ids.bytes") }},
	{`no tensor "features.values"`, sparse, func(c *content) { c.drop("features.values") }},
	{`"indptr" has the shape [4]`, two, func(c *content) { c.set("indptr", []int64{0, 1, 2, 3}, 4) }},
	{`"indptr" does not rise from 0 to 3`, two, func(c *content) { c.set("indptr", []int64{0, 4, 3}, 3) }},
	{`"indptr" does not rise from 0 to 3`, two, func(c *content) { c.set("indptr", []int64{1, 2, 3}, 3) }},
	{`"indptr" does not rise from 0 to 3`, two, func(c *content) { c.set("indptr", []int64{0, 2, 4}, 3) }},
	{`"indptr" does not rise from 0 to 3`, two, func(c *content) { c.set("indptr", []int64{0, -1, 3}, 3) }},
	{`"indices" has 10 in row 0, which does not ascend below 10`, two, func(c *content) { c.set("indices", []int32{0, 10, 5}, 3) }},
	{`"indices" has -1 in row 1`, two, func(c *content) { c.set("indices", []int32{0, 1, -1}, 3) }},
	{`"indices" has 4 in row 0`, two, func(c *content) { c.set("indices", []int32{4, 4, 0}, 3) }},
	{`"weights" has the shape [2]`, two, func(c *content) { c.set("weights", []float32{1, 2}, 2) }},
	{`"features" has the shape [3 2]`, two, func(c *content) { c.set("features", make([]float32, 6), 3, 2) }},
	{"holds F32 where BF16", two, func(c *content) { c.meta["dtype"] = "bf16" }},
	{`"features.indices" has 3 in row 1, which does not ascend below 3`, sparse, func(c *content) { c.set("features.indices", []int32{0, 3}, 2) }},
	{`"features.indptr" does not rise`, sparse, func(c *content) { c.set("features.indptr", []int64{0, 3, 2}, 3) }},
	{`"features.values" has the shape [1]`, sparse, func(c *content) { c.set("features.values", []uint16{1}, 1) }},
	{"row 1 has the label 2 of 2 classes", two, func(c *content) { c.set("labels", []int32{0, 2}, 2) }},
	{"row 0 has the label -2", two, func(c *content) { c.set("labels", []int32{-2, 0}, 2) }},
	{"row 1 of split 1 has the unknown mark 4", two, func(c *content) { c.set("splits", []uint8{0, 0, 0, 4}, 2, 2) }},
	{`"splits" has the shape [1 1]`, two, func(c *content) { c.set("splits", []uint8{0}, 1, 1) }},
	{`"original_ids.offsets" does not rise`, two, func(c *content) { c.set("original_ids.offsets", []int64{0, 6, 5}, 3) }},
}

func TestWrongShardsAreRefused(t *testing.T) {
	for _, c := range wrongShards {
		shard := c.of()
		c.change(shard)
		path := write(t, shard.bytes(t))
		_, err := OpenShard(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, and %q was expected", err, c.want)
		}
	}
	empty := two()
	empty.meta["vertices"] = "0"
	empty.tensors = []tensor{
		{"indptr", safetensors.I64, []int64{1}, []int64{0}},
		{"original_ids", safetensors.I64, []int64{0}, []int64{}},
		{"indices", safetensors.I32, []int64{0}, []int32{}},
		{"features", safetensors.F32, []int64{0, 3}, []float32{}},
		{"splits", safetensors.U8, []int64{1 << 50, 0}, []uint8{}},
	}
	if _, err := OpenShard(write(t, empty.bytes(t))); err == nil || !strings.Contains(err.Error(), "at most 1024 splits") {
		t.Errorf("a shard without vertices and with very many splits: %v", err)
	}
	empty.set("splits", []uint8{}, 3, 0)
	s, err := OpenShard(write(t, empty.bytes(t)))
	if err != nil || len(s.Marks) != 3 {
		t.Fatalf("a shard without vertices: %v", err)
	}
	s.Close()
}

// The digest is that of what is mapped, also once the file has no name any more.
func TestDigestOfAMapping(t *testing.T) {
	b := two().bytes(t)
	sum := sha256.Sum256(b)
	path := write(t, b)
	s, err := OpenShard(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(sum[:])
	if got, err := s.SHA256(); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := f.WriteAt([]byte{b[len(b)-1] + 1}, int64(len(b)-1)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.SHA256(); err != nil || got == want {
		t.Errorf("after a byte was changed: %s, %v", got, err)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SHA256(); err == nil || !s.Broken() {
		t.Errorf("a file that is cut off: %v", err)
	}
}

func TestToBF16(t *testing.T) {
	for f, want := range map[float32]uint16{
		0: 0, 1: 0x3f80, -2: 0xc000,
		1 + 1.0/256:           0x3f80, // in the middle: to the even one
		1 + 3.0/256:           0x3f82,
		1 + 1.0/256 + 1.0/4e4: 0x3f81,
		1 + 1.0/256 - 1.0/4e4: 0x3f80,
	} {
		to := []uint16{0}
		if ToBF16(to, []float32{f}); to[0] != want {
			t.Errorf("%v becomes %x, not %x", f, to[0], want)
		}
	}
	var zero float32
	to := make([]uint16, 3)
	ToBF16(to, []float32{1 / zero, -1 / zero, zero / zero})
	if to[0] != 0x7f80 || to[1] != 0xff80 || to[2]&0x7fff <= 0x7f80 {
		t.Errorf("infinities and NaN become %x", to)
	}
}

func FuzzOpenShard(f *testing.F) {
	described := two()
	described.describe(2)
	for _, c := range []*content{two(), sparse(), described} {
		f.Add(c.bytes(f))
	}
	for _, c := range wrongShards {
		shard := c.of()
		shard.meta = maps.Clone(shard.meta)
		c.change(shard)
		f.Add(shard.bytes(f))
	}
	path := filepath.Join(f.TempDir(), "fuzzed.safetensors")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path) // to write over it would wait for the disk
		s, err := OpenShard(path)
		if err != nil {
			return
		}
		defer s.Close()
		// Whatever is let pass can be walked through.
		sum := float32(0)
		for row := range s.Vertices {
			for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
				if uint32(s.Indices[e]) >= s.Total {
					t.Fatal("an edge from nowhere")
				}
				if s.Weights != nil {
					sum += s.Weights[e]
				}
				if s.EdgeRows.Columns > 0 {
					sum += s.EdgeRows.Append(nil, e)[0]
				}
			}
			if s.Sparse != nil {
				for e := s.Sparse.Indptr[row]; e < s.Sparse.Indptr[row+1]; e++ {
					_ = s.Sparse.Columns[e]
				}
			}
			if s.Dense != nil {
				_ = s.Dense[row*s.Features : (row+1)*s.Features]
			}
			_ = s.Originals.Append(nil, row)
			for _, marks := range s.Marks {
				_ = marks[row]
			}
			if s.Labels != nil {
				_ = s.Labels[row]
			}
		}
		_ = sum
	})
}
