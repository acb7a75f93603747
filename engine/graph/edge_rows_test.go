package graph

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// describe gives the edges of a shard features.
func (c *content) describe(columns int) {
	edges := 0
	for _, t := range c.tensors {
		if t.name == "indices" {
			edges = int(t.shape[0])
		}
	}
	c.meta[EdgeFeatures] = strconv.Itoa(columns)
	shape := []int64{int64(edges), int64(columns)}
	if c.meta["dtype"] == "bf16" {
		rows := make([]uint16, edges*columns)
		for i := range rows {
			rows[i] = uint16(0x3f80 + i)
		}
		c.tensors = append(c.tensors[:len(c.tensors)-2:len(c.tensors)-2], append([]tensor{{EdgeFeatures, safetensors.BF16, shape, rows}}, c.tensors[len(c.tensors)-2:]...)...)
		return
	}
	rows := make([]float32, edges*columns)
	for i := range rows {
		rows[i] = float32(i) + 0.5
	}
	at := len(c.tensors) - 2
	if edges == 0 {
		at = len(c.tensors) - 1
	}
	c.tensors = append(c.tensors[:at:at], append([]tensor{{EdgeFeatures, safetensors.F32, shape, rows}}, c.tensors[at:]...)...)
}

func TestEdgeRows(t *testing.T) {
	for dtype, want := range map[string][]float32{"f32": {2.5, 3.5}, "bf16": {1.015625, 1.0234375}} {
		c := two()
		c.meta["dtype"] = dtype
		if dtype == "bf16" {
			c.tensors[5] = tensor{"features", safetensors.BF16, []int64{2, 3}, make([]uint16, 6)}
		}
		c.describe(2)
		s, err := OpenShard(write(t, c.bytes(t)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := s.EdgeRows.Append(nil, 1); s.EdgeRows.Columns != 2 || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: the second edge has %v of %d columns, and not %v", dtype, got, s.EdgeRows.Columns, want)
		}
		if n := s.EdgeRows.Bytes(); n != 3*DType(dtype).EdgeRowBytes(2) {
			t.Errorf("%s: %d bytes", dtype, n)
		}
		k := NewSkeleton(s, StatsOf(s), false)
		if r := k.Shard.EdgeRows; r.Columns != 2 || r.F32 != nil || r.BF16 != nil {
			t.Errorf("a skeleton without edges has %+v", r)
		}
		bare := *s
		if bare.Shed(); bare.EdgeRows.Columns != 2 || bare.EdgeRows.Bytes() != 0 {
			t.Errorf("without edges there are %+v", bare.EdgeRows)
		}
	}
}

func TestWrongEdgeRows(t *testing.T) {
	for text, change := range map[string]func(c *content){
		"which is no number from 1 to 4096": func(c *content) { c.meta[EdgeFeatures] = "4097" },
		`has "-1" for edge_features`:        func(c *content) { c.meta[EdgeFeatures] = "-1" },
		"has the shape [3 2]":               func(c *content) { c.meta[EdgeFeatures] = "3" },
		"no tensor":                         func(c *content) { c.drop(EdgeFeatures) },
	} {
		c := two()
		c.describe(2)
		change(c)
		if s, err := OpenShard(write(t, c.bytes(t))); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
			if err == nil {
				s.Close()
			}
		}
	}
}

func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		x := FromBF16(uint16(i))
		var back [1]uint16
		if ToBF16(back[:], []float32{x}); x == x && back[0] != uint16(i) || math.Float32bits(x)&0xffff != 0 {
			t.Fatalf("%#x is %v, which is %#x", i, x, back[0])
		}
	}
}
