package keyed_test

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// The vectors below are frozen: they come from the formulas in the comments, worked
// out in another language, and every kernel in assembly or on a GPU has to agree.

func TestWithIsFrozen(t *testing.T) {
	for _, v := range []struct {
		key  keyed.Key
		x    uint64
		want keyed.Key
	}{
		{0, 0, 0xe220a8397b1dcdaf},
		{0, 1, 0x6e789e6aa1b965f4},
		{1, 0, 0x910a2dec89025cc1},
		{math.MaxUint64, math.MaxUint64, 0xb4d055fcf2cbbd7b},
		{0x123456789abcdef, 42, 0x537a638df1af2be9},
	} {
		if got := v.key.With(v.x); got != v.want {
			t.Errorf("Key(%#x).With(%#x) is %#x, want %#x", v.key, v.x, got, v.want)
		}
	}
	for _, v := range []struct {
		seed    uint64
		purpose keyed.Purpose
		want    keyed.Key
	}{
		{0, keyed.Initial, 0xb382a305f4414f5e},
		{1 << 63, keyed.Order, 0x59434d54b4c58ce},
		{7, keyed.Neighbor, 0x1e5507b778c2995d},
		{7, keyed.Dropout, 0x184249f2024d33e5},
	} {
		if got := keyed.New(v.seed, v.purpose); got != v.want {
			t.Errorf("New(%d, %d) is %#x, want %#x", v.seed, v.purpose, got, v.want)
		}
	}
}

func TestDrawsAreFrozen(t *testing.T) {
	for key, want := range map[keyed.Key][]uint64{
		0:                 {0x111cb3a78f59a58e, 0xceabd938ff4e856d, 0x61fb51318f47d2a4, 0x78bd03c491909760},
		1:                 {0xcdef1695e1f8ed2c, 0x61d6d24b1c9aad40, 0x8cf880c22eebfadf, 0x5b3a992fedc4f8a},
		0x123456789abcdef: {0x58b962217aafc627, 0xd7488e0f880dbd37, 0xa175b746466eac63, 0x159c6469d42795c0},
		math.MaxUint64:    {0xba1dc814e82d5d44, 0x57accfe85fe29d15, 0x3afa6e616fb3aa6f, 0x6cfb4186089762e0},
	} {
		draws := key.Draws()
		for i, w := range want {
			if got := draws.Next(); got != w {
				t.Errorf("draw %d of key %#x is %#x, want %#x", i, key, got, w)
			}
		}
	}
	below := keyed.Key(0x123456789abcdef).Draws()
	for i, n := range []uint64{1, 2, 10, 1000, 1 << 32, math.MaxUint64} {
		want := []uint64{0, 1, 6, 84, 3425616648, 11949163891850330914}[i]
		if got := below.Below(n); got != want {
			t.Errorf("draw %d below %d is %d, want %d", i, n, got, want)
		}
	}
	floats := keyed.Key(0x123456789abcdef).Draws()
	for i, want := range []float64{0x1.62e58885eabf0p-2, 0x1.ae911c1f101b7p-1, 0x1.42eb6e8c8cdd5p-1} {
		if got := floats.Float64(); got != want {
			t.Errorf("draw %d of [0, 1) is %x, want %x", i, got, want)
		}
	}
}

func TestColumnIsFrozen(t *testing.T) {
	columns := []uint32{0, 1, 2, 255, math.MaxUint32}
	for key, want := range map[keyed.Key][]uint32{
		0:                 {0, 0x92ca2f0e, 0x3cd6e3f3, 0x8987eb0e, 0x36bf99aa},
		1:                 {0x514e28b7, 0x96a0f96b, 0x12bc8390, 0x75e474a, 0xe80c4bba},
		1 << 32:           {0x514e28b7, 0x36deb503, 0x12bc8390, 0x43d051a8, 0x3b66b2aa},
		0x123456789abcdef: {0x1d6ef8ae, 0x46014f43, 0xdec7d1c0, 0x53352e19, 0xb1242427},
		math.MaxUint64:    {0, 0x36bf99aa, 0xe8ccfe8d, 0x3db332a3, 0x92ca2f0e},
	} {
		for i, c := range columns {
			if got := key.Column(c); got != want[i] {
				t.Errorf("column %d of key %#x is %#x, want %#x", c, key, got, want[i])
			}
		}
	}
}

func TestThresholdIsFrozen(t *testing.T) {
	for p, want := range map[float64]uint32{
		0: 0, -1: 0, 1e-12: 0, 0x1p-32: 1, .25: 1 << 30, .5: 1 << 31, float64(float32(.1)): 429496736,
		.6: 2576980377, 1 - 0x1p-32: math.MaxUint32, 1: math.MaxUint32, 2: math.MaxUint32, math.Inf(1): math.MaxUint32,
	} {
		if got := keyed.Threshold(p); got != want {
			t.Errorf("the threshold of %v is %d, want %d", p, got, want)
		}
	}
}

// Paths through the tree of keys that look alike end in different keys.
func TestKeysDoNotCollide(t *testing.T) {
	var keys []keyed.Key
	for seed := range uint64(8) {
		for epoch := range uint64(8) {
			for step := range uint64(16) {
				k := keyed.New(seed, keyed.Dropout).With(epoch).With(step)
				for layer := range uint64(4) {
					for vertex := range uint64(256) {
						keys = append(keys, k.With(layer).With(vertex), k.With(layer).With(vertex<<32))
					}
				}
			}
		}
	}
	slices.Sort(keys)
	distinct := len(slices.Compact(slices.Clone(keys)))
	// Vertex 0 is there twice in each of the layers.
	if want := len(keys) - 8*8*16*4; distinct != want {
		t.Errorf("%d of %d keys are distinct, want %d", distinct, len(keys), want)
	}
}

func TestOrderOfFieldsMatters(t *testing.T) {
	root := keyed.New(1, keyed.Order)
	for a := range uint64(300) {
		for b := range a {
			if root.With(a).With(b) == root.With(b).With(a) {
				t.Fatalf("%d and %d may be swapped", a, b)
			}
		}
	}
	if root.With(3) == root || root.With(3).With(0) == root.With(3) || root.With(0) == keyed.New(1, keyed.Neighbor).With(0) {
		t.Error("a field or a purpose counts for nothing")
	}
}
