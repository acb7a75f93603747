package frontier

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// answerOf is an answer written down number by number.
func answerOf(numbers ...uint32) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

func TestDecode(t *testing.T) {
	const one = 0x3f800000
	var r rows
	r.reset(0)
	// Three rows without weights, then two with some, then one without.
	for _, b := range [][]byte{
		answerOf(3, 3, 0, 1, 0, 9, 7, 6, 5),
		answerOf(2, 1, 1, 0, 1, 4, one+1<<23),
		answerOf(1, 2, 0, 2, 1, 2),
		answerOf(1, 2, 0, 11, 1, 1), // a source occurs once for each relation
	} {
		if n, err := r.decode(b, 3, 2, 10); err != nil || n != int(b[0]) {
			t.Fatal(n, err)
		}
	}
	if !slices.Equal(r.Degrees, []int32{1, 0, 9, 0, 1, 2, 11}) || !slices.Equal(r.Indptr, []int64{0, 1, 1, 3, 3, 4, 6, 8}) ||
		!slices.Equal(r.Sources, []int32{7, 6, 5, 4, 1, 2, 1, 1}) || !r.weighted || !slices.Equal(r.Weights, []float32{1, 1, 1, 2, 1, 1, 1, 1}) {
		t.Errorf("%+v", r)
	}
}

func TestWrongAnswersAreRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		b    []byte
	}{
		{"cut off", nil},
		{"cut off", answerOf(1, 0)},
		{"cut off", answerOf(1, 0, 0)},
		{"cut off", answerOf(1, 0, 0, 0, 0)},
		{"cut off", answerOf(1, 1, 0, 1)},
		{"cut off", answerOf(1, 1, 1, 1, 1)},
		{"cut off", answerOf(1, 1<<32-1, 1, 1, 1)},
		{"cut off", answerOf(1, 1<<30, 0, 1)},
		{"has 0 rows", answerOf(0, 0, 0)},
		{"has 4 rows", answerOf(4, 0, 0, 0, 0, 0, 0)},
		{"has 4294967295 rows", answerOf(1<<32-1, 0, 0)},
		{"of another kind", answerOf(1, 0, 2, 0)},
		{"81921 neighbours in a graph of 10", answerOf(1, 2, 0, 10*graph.MaxRelations+1, 0, 1)},
		{"2147483647 neighbours", answerOf(1, 2, 0, 1<<32-1, 0, 1)},
		{"81921 neighbours in a graph of 10", answerOf(1, 2, 0, 1<<31+10*graph.MaxRelations+1, 0, 1)},
		{"1 entries where its rows have 2", answerOf(1, 1, 0, 5, 0)},
		{"3 entries where its rows have 2", answerOf(1, 3, 0, 5, 0, 1, 2)},
		{"vertex 10 of a graph of 10", answerOf(1, 1, 0, 1, 10)},
		{"vertex 4294967295", answerOf(1, 1, 0, 1, 1<<32-1)},
	} {
		var r rows
		r.reset(0)
		if _, err := r.decode(c.b, 3, 2, 10); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, and %q was expected", c.b, err, c.want)
		}
	}
}

// TestLimits holds what is asked for at most against what fits.
func TestLimits(t *testing.T) {
	for rows := range 3000 {
		for _, fanout := range []int{0, 1, 10, 1000, 1 << 31} {
			most := mostEntries(rows)
			if fanout > 0 {
				most = min(most, rows*fanout)
			}
			if largest := header + 4*rows + 8*most; largest > limit(rows, fanout) || limit(rows, fanout) > mostAnswer {
				t.Fatalf("%d rows of %d take %d bytes, and %d are taken", rows, fanout, largest, limit(rows, fanout))
			}
		}
	}
	if mostEntries(mostVertices) < 1<<24 || prefix+4*mostVertices > mostBody {
		t.Error("a full question has little room for its answer")
	}
}

func TestDecodeInverses(t *testing.T) {
	got, err := decodeInverses([]float32{7}, answerOf(0, 0x3f800000, 0x7f7fffff), 3)
	if err != nil || !slices.Equal(got, []float32{7, 0, 1, math.MaxFloat32}) {
		t.Error(got, err)
	}
	for _, c := range []struct {
		want string
		b    []byte
	}{
		{"cut off", nil},
		{"cut off", answerOf(0)},
		{"cut off", answerOf(0, 0, 0)},
		{"cut off", answerOf(0, 0)[:7]},
		{"1/NaN", answerOf(0, 0x7fc00000)},
		{"1/+Inf", answerOf(0x7f800000, 0)},
		{"1/-1", answerOf(0, 0xbf800000)},
	} {
		if _, err := decodeInverses(nil, c.b, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, and %q was expected", c.b, err, c.want)
		}
	}
}

func FuzzDecodeInverses(f *testing.F) {
	f.Add(answerOf(0, 0x3f800000), uint16(2))
	f.Add(answerOf(0x7fc00000), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, asked uint16) {
		got, err := decodeInverses(nil, b, int(asked))
		if err != nil {
			return
		}
		if len(got) != int(asked) || len(got) > 0 && !bytes.Equal(raw(got), b) {
			t.Fatalf("%v becomes %v", b, got)
		}
		for _, f := range got {
			if !(f >= 0 && f <= math.MaxFloat32) {
				t.Fatalf("%v is taken", f)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(answerOf(3, 3, 0, 1, 0, 9, 7, 6, 5), uint16(3), uint16(2), uint16(10))
	f.Add(answerOf(2, 1, 1, 0, 1, 4, 0), uint16(2), uint16(0), uint16(10))
	f.Add(answerOf(1, 0, 1, 0), uint16(1), uint16(73), uint16(100))
	f.Add(answerOf(1, 1<<30, 0, 1), uint16(1), uint16(1), uint16(100))
	f.Fuzz(func(t *testing.T, b []byte, asked, fanout, vertices uint16) {
		var r rows
		r.reset(0)
		n, err := r.decode(b, int(asked), int(fanout), uint32(vertices))
		if err != nil {
			return
		}
		if n < 1 || n > int(asked) || len(r.Degrees) != n || len(r.Indptr) != n+1 || r.Indptr[n] != int64(len(r.Sources)) || !slices.IsSorted(r.Indptr) {
			t.Fatalf("%d rows of %d: %+v", n, asked, r)
		}
		for i, degree := range r.Degrees {
			if r.Indptr[i+1]-r.Indptr[i] != int64(sample.Kept(degree&sample.Degree, int(fanout))) {
				t.Fatal("other entries than are drawn")
			}
		}
		for _, u := range r.Sources {
			if u < 0 || int(u) >= int(vertices) {
				t.Fatal("a source that the graph does not have")
			}
		}
		d := r.Drawn
		if !r.weighted {
			d.Weights = nil
		} else if d.Weights == nil {
			d.Weights = []float32{} // weights of no entries
		}
		var head [header]byte
		parts := encode(&d, &head)
		if got := bytes.Join(parts[:], nil); !bytes.Equal(got, b) {
			t.Fatalf("%v becomes %v", b, got)
		}
	})
}
