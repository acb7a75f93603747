package wire

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sets are keys as they travel, and odd ones.
func sets() map[string][]uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	all := map[string][]uint64{
		"none": nil, "one": {7}, "zero": {0, 0}, "most": {math.MaxUint64, 0, math.MaxUint64, 1 << 63},
		"equal": {5<<32 | 3, 5<<32 | 3, 5<<32 | 2},
	}
	for _, bits := range []int{0, 3, 17, 31, 32} {
		var keys []uint64
		for range 3000 {
			keys = append(keys, uint64(r.Uint32()>>(32-bits))<<32|uint64(r.Uint32()>>(32-bits)))
		}
		all[string(rune('a'+bits))] = keys
	}
	return all
}

func TestRecords(t *testing.T) {
	var p Packer
	for name, keys := range sets() {
		got, weights, err := Records(AppendRecords(nil, keys, []float32{1, 2}), nil)
		if err != nil || !slices.Equal(got, keys) || !slices.Equal(weights, []float32{1, 2}) {
			t.Errorf("%s: %d of %d keys, %v, %v", name, len(got), len(keys), weights, err)
		}
		want := slices.Clone(keys)
		slices.Sort(want)
		want = slices.Compact(want)
		m := p.Append([]byte("head"), slices.Clone(keys))
		got, weights, err = Records(m[4:], make([]uint64, 0, 10))
		slices.Sort(got)
		got = slices.Compact(got)
		if err != nil || !slices.Equal(got, want) || weights != nil {
			t.Errorf("%s, packed: %d of %d keys, %v, %v", name, len(got), len(want), weights, err)
		}
	}
}

// Edges between a quarter of a million vertices travel in less than half of their bytes.
func TestPackedSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]uint64, MaxRecords)
	for i := range keys {
		keys[i] = uint64(r.Uint32()>>15)<<32 | uint64(r.Uint32()>>14)
	}
	var p Packer
	if n := len(p.Append(nil, keys)); n > 4*len(keys) {
		t.Errorf("%.1f bytes a record", float64(n)/float64(len(keys)))
	}
}

func TestRecordsThatLie(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"half a head":    {1, 0, 0, 0, 1},
		"too few":        {2, 0, 0, 0, plainKeys, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
		"half a weight":  {0, 0, 0, 0, plainKeys, 0, 0, 0, 1, 2},
		"too many":       append([]byte{1, 0, 1, 0, packedKeys, 0, 0, 0}, make([]byte, MaxRecords+1)...),
		"other kind":     {0, 0, 0, 0, 2, 0, 0, 0},
		"wide":           {1, 0, 0, 0, packedKeys, 33, 0, 0, 1},
		"no end":         {1, 0, 0, 0, packedKeys, 8, 0, 0, 0x80},
		"more":           {1, 0, 0, 0, packedKeys, 8, 0, 0, 1, 1},
		"long":           append([]byte{1, 0, 0, 0, packedKeys, 32, 0, 0}, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1),
		"no such vertex": {1, 0, 0, 0, packedKeys, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x20},
		"below none":     {1, 0, 0, 0, packedKeys, 0, 0, 0, 1},
	} {
		if keys, _, err := Records(b, nil); err == nil {
			t.Errorf("%s: %v", name, keys)
		}
	}
}

// What is taken is the same when it is written again.
func FuzzRecords(f *testing.F) {
	var p Packer
	for _, keys := range sets() {
		keys = keys[:min(len(keys), 20)]
		f.Add(AppendRecords(nil, keys, []float32{1}))
		f.Add(bytes.Clone(p.Append(nil, slices.Clone(keys))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, weights, err := Records(b, nil)
		if err != nil {
			return
		}
		if len(keys) > len(b) || 4*len(weights) > len(b) {
			t.Fatalf("%d keys and %d weights in %d bytes", len(keys), len(weights), len(b))
		}
		want := slices.Compact(slices.Sorted(slices.Values(keys)))
		var p Packer
		got, _, err := Records(p.Append(nil, keys), nil)
		slices.Sort(got)
		got = slices.Compact(got)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, want %v, %v", got, want, err)
		}
	})
}

func BenchmarkRecords(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	keys, other := make([]uint64, MaxRecords), make([]uint64, MaxRecords)
	for i := range keys {
		keys[i] = uint64(r.Uint32()>>15)<<32 | uint64(r.Uint32()>>14)
	}
	var p Packer
	m := p.Append(nil, slices.Clone(keys))
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(MaxRecords)
		for b.Loop() {
			copy(other, keys)
			m = p.Append(m[:0], other)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(MaxRecords)
		for b.Loop() {
			if _, _, err := Records(m, other); err != nil {
				b.Fatal(err)
			}
		}
	})
}
