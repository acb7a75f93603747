package read

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestHybridRunsAreReadInAnyPortions(t *testing.T) {
	for width := uint(1); width <= 32; width++ {
		random := rand.New(rand.NewPCG(uint64(width), 1))
		var b []byte
		var want []uint32
		for range 20 {
			if random.IntN(2) == 0 {
				n, v := 1+random.IntN(40), uint32(random.Uint64()&(1<<width-1))
				b = binary.AppendUvarint(b, uint64(n)<<1)
				b = append(b, binary.LittleEndian.AppendUint32(nil, v)[:(width+7)/8]...)
				want = append(want, slices.Repeat([]uint32{v}, n)...)
				continue
			}
			groups := 1 + random.IntN(5)
			b = binary.AppendUvarint(b, uint64(groups)<<1|1)
			packed := make([]byte, groups*int(width))
			for i := range groups * 8 {
				v := uint32(random.Uint64() & (1<<width - 1))
				want = append(want, v)
				for bit := range int(width) {
					packed[(i*int(width)+bit)/8] |= byte(v>>bit&1) << ((i*int(width) + bit) % 8)
				}
			}
			b = append(b, packed...)
		}
		h, err := newHybrid(b, width)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for len(got) < len(want) {
			if got, err = h.read(got, min(1+random.IntN(30), len(want)-len(got))); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("width %d: %v, want %v", width, got, want)
		}
		if _, err := h.read(nil, 1); !errors.Is(err, errValues) {
			t.Errorf("width %d: behind the end: %v", width, err)
		}
	}
}

// TestClaimsCostNothing gives decoders runs and counts that no memory would hold.
func TestClaimsCostNothing(t *testing.T) {
	run := binary.AppendUvarint(nil, 1<<61)
	h, err := newHybrid(append(run, 7), 3)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.read(nil, 5); err != nil || !slices.Equal(got, []uint32{7, 7, 7, 7, 7}) || cap(got) > 64 {
		t.Errorf("%v with room for %d: %v", got, cap(got), err)
	}
	var head []byte
	for _, v := range []uint64{128, 4, 1 << 40, 2} {
		head = binary.AppendUvarint(head, v)
	}
	if _, err := newDeltas(head, 1000); !errors.Is(err, errThrift) {
		t.Errorf("2^40 differences in a page of 1000 values: %v", err)
	}
	list := &thrift{b: append([]byte{0xf9}, binary.AppendUvarint(nil, 1<<50)...)}
	list.list(func(byte) { t.Error("an element of nothing") })
	if !errors.Is(list.err, errThriftEnd) {
		t.Errorf("a list of 2^50: %v", list.err)
	}
	deep := &thrift{b: []byte(strings.Repeat("\x1c", 1000))}
	deep.skip(thriftStruct)
	if deep.err == nil {
		t.Error("structures a thousand deep")
	}
	p := &pages{codec: 6}
	if _, err := p.unpack([]byte("abc"), maxPage, 0); !errors.Is(err, errThrift) {
		t.Errorf("a page of 1 GiB from 3 bytes: %v", err)
	}
}

func TestHalfFloats(t *testing.T) {
	for h, want := range map[uint16]float32{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 1.0 / (1 << 24), 0x03ff: 1023.0 / (1 << 24), 0x0400: 1.0 / (1 << 14), 0x3555: 0.333251953125} {
		if got := half(h); got != want {
			t.Errorf("%#x is %v, want %v", h, got, want)
		}
	}
	if !math.IsInf(float64(half(0xfc00)), -1) || !math.IsNaN(float64(half(0x7e00))) {
		t.Error("what is not finite became so")
	}
}

func TestNullsAreWhereTheyWere(t *testing.T) {
	type row struct {
		ID    int64  `parquet:"id"`
		Label *int64 `parquet:"label,optional"`
	}
	var rows []row
	for i := range int64(3000) {
		r := row{ID: i}
		if i%7 < 3 || i > 2000 && i < 2500 {
			r.Label = new(i % 50)
		}
		rows = append(rows, r)
	}
	for _, version := range []int{1, 2} {
		file := parquetOf(t, rows, parquet.DataPageVersion(version), parquet.PageBufferSize(500))
		s := mustOpen(t, folder(t, map[string]string{"edges.csv": "0,1\n", "labels.parquet": file}))
		for i, label := range s.Labels() {
			want := int32(-1)
			if rows[i].Label != nil {
				want = int32(*rows[i].Label)
			}
			if label != want {
				t.Fatalf("version %d: label %d is %d, want %d", version, i, label, want)
			}
		}
	}
}

func TestUnsignedIDsAndNullsInLists(t *testing.T) {
	type wide struct {
		Src uint32 `parquet:"src"`
		Dst uint32 `parquet:"dst"`
	}
	type list struct {
		ID       int64      `parquet:"id"`
		Features []*float32 `parquet:"features,list"`
	}
	dir := folder(t, map[string]string{"edges.parquet": parquetOf(t, []wide{{4_000_000_000, 1}})})
	if got := edgesOf(t, mustOpenParquet(t, dir)); !slices.Equal(got, []string{"4000000000>1"}) {
		t.Error(got)
	}
	dir = folder(t, map[string]string{"edges.csv": "1,2\n", "features.parquet": parquetOf(t, []list{{1, []*float32{new(float32(1))}}, {2, []*float32{nil}}})})
	if err := readThrough(t, openCSV, dir, Options{}); err == nil || !strings.Contains(err.Error(), "features.parquet, row 2: a feature is missing") {
		t.Error(err)
	}
}
