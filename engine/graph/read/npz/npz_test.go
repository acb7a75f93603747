package npz

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/numpy"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestLists(t *testing.T) {
	for name, method := range map[string]uint16{"stored": zip.Store, "deflated": zip.Deflate} {
		t.Run(name, func(t *testing.T) {
			h := readtest.MustHold(t, Open, readtest.Lists().File(t, method), source.Options{})
			if want := (graph.Meta{Format: "npz", Vertices: 5, Edges: 4, Features: 2, Classes: 3}); !reflect.DeepEqual(h.Meta, want) {
				t.Errorf("it is %+v", h.Meta)
			}
			if want := [][2]uint32{{0, 1}, {1, 2}, {2, 0}, {4, 4}}; !slices.Equal(h.Edges, want) {
				t.Errorf("edges %v", h.Edges)
			}
			if !slices.Equal(h.Labels, []int32{0, 1, -1, 2, 0}) || len(h.Splits) != 1 || !slices.Equal(h.Splits[0], []graph.Mark{1, 2, 1, 3, 0}) {
				t.Errorf("labels %v, splits %v", h.Labels, h.Splits)
			}
			if !slices.Equal(h.Features[4], []readtest.Cell{{0, 9}, {1, 10}}) || len(h.Features) != 5 {
				t.Errorf("features %v", h.Features)
			}
			if h.Notes != nil {
				t.Errorf("notes %q", h.Notes)
			}
		})
	}
}

func TestMatrices(t *testing.T) {
	for name, method := range map[string]uint16{"stored": zip.Store, "deflated": zip.Deflate} {
		t.Run(name, func(t *testing.T) {
			h := readtest.MustHold(t, Open, readtest.Matrices().File(t, method), source.Options{})
			if want := (graph.Meta{Format: "npz", Vertices: 3, Edges: 4, Features: 4, Sparse: true, NonZeros: 4, Classes: 2}); !reflect.DeepEqual(h.Meta, want) {
				t.Errorf("it is %+v", h.Meta)
			}
			// A row is a source, its columns are targets.
			if want := [][2]uint32{{0, 1}, {0, 2}, {2, 0}, {2, 0}}; !slices.Equal(h.Edges, want) {
				t.Errorf("edges %v", h.Edges)
			}
			if !slices.Equal(h.Features[0], []readtest.Cell{{0, 6}, {3, 5}}) || len(h.Features[1]) != 0 || !slices.Equal(h.Features[2], []readtest.Cell{{1, 7}, {2, 8}}) {
				t.Errorf("features %v", h.Features)
			}
			if len(h.Splits) != 2 || !slices.Equal(h.Splits[0], []graph.Mark{1, 2, 3}) || !slices.Equal(h.Splits[1], []graph.Mark{3, 1, 2}) {
				t.Errorf("splits %v", h.Splits)
			}
		})
	}
}

// Whatever the types, the graph is the same.
func TestNumberTypes(t *testing.T) {
	want := readtest.MustHold(t, Open, readtest.Lists().File(t, zip.Store), source.Options{})
	same := func(t *testing.T, z readtest.Arrays) *readtest.Held {
		t.Helper()
		h := readtest.MustHold(t, Open, z.File(t, zip.Deflate), source.Options{})
		if !slices.Equal(h.Edges, want.Edges) || !slices.Equal(h.Labels, want.Labels) || !slices.Equal(h.Splits[0], want.Splits[0]) {
			t.Errorf("edges %v, labels %v, splits %v", h.Edges, h.Labels, h.Splits)
		}
		for v, row := range want.Features {
			if !slices.Equal(h.Features[v], row) {
				t.Errorf("vertex %d has %v", v, h.Features[v])
			}
		}
		return h
	}
	nan := math.NaN()
	for name, a := range map[string]struct {
		key   string
		array readtest.NPY
	}{
		"int8 edges":     {"edge_index", readtest.Of("(2, 4)", []int8{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint8 edges":    {"edge_index", readtest.Of("(2, 4)", []uint8{0, 1, 2, 4, 1, 2, 0, 4})},
		"int16 edges":    {"edge_index", readtest.Of("(2, 4)", []int16{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint16 edges":   {"edge_index", readtest.Big(">u2", "(2, 4)", []uint16{0, 1, 2, 4, 1, 2, 0, 4})},
		"int32 edges":    {"edge_index", readtest.Of("(2, 4)", []int32{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint32 edges":   {"edge_index", readtest.Of("(2, 4)", []uint32{0, 1, 2, 4, 1, 2, 0, 4})},
		"int32 swapped":  {"edge_index", readtest.Big(">i4", "(2, 4)", []int32{0, 1, 2, 4, 1, 2, 0, 4})},
		"int64 swapped":  {"edge_index", readtest.Big(">i8", "(2, 4)", []int64{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint64 edges":   {"edge_index", readtest.Of("(2, 4)", []uint64{0, 1, 2, 4, 1, 2, 0, 4})},
		"transposed":     {"edge_index", readtest.Of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).InFortranOrder()},
		"float64":        {"x", readtest.Of("(5, 2)", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float32":        {"x", readtest.Big(">f4", "(5, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float64 large":  {"x", readtest.Big(">f8", "(5, 2)", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float16":        {"x", readtest.Of("(5, 2)", []uint16{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800, 0x4880, 0x4900}).As("<f2")},
		"int features":   {"x", readtest.Of("(5, 2)", []int16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"version 2":      {"x", func() readtest.NPY { a := readtest.Lists()["x"]; a.Version = 2; return a }()},
		"version 3":      {"x", func() readtest.NPY { a := readtest.Lists()["x"]; a.Version = 3; return a }()},
		"sizes as 5L":    {"x", readtest.Of("(5L, 2L)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float labels":   {"y", readtest.Of("(5, 1)", []float64{0, 1, nan, 2, 0})},
		"float32 labels": {"y", readtest.Of("(5,)", []float32{0, 1, -1, 2, 0})},
		"int8 labels":    {"y", readtest.Of("(5, 1)", []int8{0, 1, -1, 2, 0})},
		"a mask of ints": {"val_mask", readtest.Of("(5, 1)", []int64{0, 1, 0, 0, 0})},
	} {
		t.Run(name, func(t *testing.T) { same(t, readtest.Lists().With(a.key, &a.array)) })
	}
	for _, count := range []readtest.NPY{readtest.Of("()", []int64{5}), readtest.Of("(1,)", []int32{5}), readtest.Of("(1, 1)", []uint8{5})} {
		same(t, readtest.Lists().With("num_nodes", &count))
	}
	other := readtest.Of("(1,)", []int8{0})
	if h := same(t, readtest.Lists().With("node_year", &other)); len(h.Notes) != 1 || h.Notes[0] != "g.npz: the array node_year was not used." {
		t.Errorf("notes %q", h.Notes)
	}
}

func TestNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	v := make([]float32, 5000)
	for i := range v {
		v[i] = math.MaxFloat32 * float32(1-2*(i%2))
	}
	if at := numpy.NotFinite(v); at != -1 {
		t.Errorf("number %d of finite ones is not", at)
	}
	for _, at := range []int{0, 1023, 1024, 4999} {
		for _, bad := range []float32{inf, -inf, float32(math.NaN()), math.Float32frombits(0xff800001)} {
			was := v[at]
			v[at] = bad
			if got := numpy.NotFinite(v); got != at {
				t.Errorf("%v at %d is found at %d", bad, at, got)
			}
			v[at] = was
		}
	}
}

func TestWeights(t *testing.T) {
	for key, a := range map[string]readtest.NPY{"edge_weight": readtest.Of("(4,)", []float64{0.5, 1, 1, -2}), "edge_attr": readtest.Of("(4, 1)", []float32{0.5, 1, 1, -2})} {
		h := readtest.MustHold(t, Open, readtest.Lists().With(key, &a).File(t, zip.Deflate), source.Options{})
		if !h.Meta.Weighted || !slices.Equal(h.Weights, []float32{0.5, 1, 1, -2}) {
			t.Errorf("%s: weights %v", key, h.Weights)
		}
		pairs := readtest.Of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).InFortranOrder()
		if h := readtest.MustHold(t, Open, readtest.Lists().With(key, &a).With("edge_index", &pairs).File(t, zip.Store), source.Options{}); !slices.Equal(h.Weights, []float32{0.5, 1, 1, -2}) {
			t.Errorf("%s: weights of pairs %v", key, h.Weights)
		}
	}
	ones := readtest.Of("(4,)", []int64{1, 1, 1, 1})
	if h := readtest.MustHold(t, Open, readtest.Lists().With("edge_weight", &ones).File(t, zip.Store), source.Options{}); h.Meta.Weighted || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "each weight in edge_weight is 1") {
		t.Errorf("weights of 1: %+v, %q", h.Meta, h.Notes)
	}
	wide := readtest.Of("(4, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8})
	if h := readtest.MustHold(t, Open, readtest.Lists().With("edge_attr", &wide).File(t, zip.Store), source.Options{}); h.Meta.Weighted || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "edge_attr was not used") {
		t.Errorf("wide edge_attr: %+v, %q", h.Meta, h.Notes)
	}
	data := readtest.Of("(4,)", []float32{1, 2, 3, 4})
	if h := readtest.MustHold(t, Open, readtest.Matrices().With("adj_data", &data).File(t, zip.Store), source.Options{}); !slices.Equal(h.Weights, []float32{1, 2, 3, 4}) {
		t.Errorf("weights of a matrix %v", h.Weights)
	}
}

func TestEdgeFeatures(t *testing.T) {
	wide, all := readtest.Of("(4, 2)", []float64{1, 2, 3, 4, 5, 6, 7, 8}), source.Options{EdgeFeatures: []string{"all"}}
	column, weights := readtest.Of("(4,)", []float32{4, 3, 2, 1}), readtest.Of("(4,)", []float32{2, 3, 4, 5})
	pairs := readtest.Of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).InFortranOrder()
	for name, c := range map[string]struct {
		arrays  readtest.Arrays
		columns int
		rows    []float32
		weights []float32
	}{
		"edge_attr":               {readtest.Lists().With("edge_attr", &wide), 2, []float32{1, 2, 3, 4, 5, 6, 7, 8}, nil},
		"edge_feat before others": {readtest.Lists().With("edge_feat", &column).With("edge_attr", &weights), 1, []float32{4, 3, 2, 1}, []float32{2, 3, 4, 5}},
		"weights beside them":     {readtest.Lists().With("edge_attr", &wide).With("edge_weight", &weights), 2, []float32{1, 2, 3, 4, 5, 6, 7, 8}, []float32{2, 3, 4, 5}},
		"pairs":                   {readtest.Lists().With("edge_attr", &column).With("edge_index", &pairs), 1, []float32{4, 3, 2, 1}, nil},
	} {
		h := readtest.MustHold(t, Open, c.arrays.File(t, zip.Deflate), all)
		if h.Meta.EdgeFeatures != c.columns || !slices.Equal(h.Rows, c.rows) || !slices.Equal(h.Weights, c.weights) {
			t.Errorf("%s: %d columns, %v, weights %v", name, h.Meta.EdgeFeatures, h.Rows, h.Weights)
		}
	}
	// A batch of edges has as many features as others have, whichever way the edges lie.
	const many, columns = 300, graph.MaxEdgeFeatures
	ends, rows := make([]int8, 2*many), make([]int8, many*columns)
	for _, index := range []readtest.NPY{readtest.Of(fmt.Sprintf("(2, %d)", many), ends), readtest.Of(fmt.Sprintf("(2, %d)", many), ends).InFortranOrder()} {
		features := readtest.Of(fmt.Sprintf("(%d, %d)", many, columns), rows)
		src, err := Open(t.Context(), readtest.Lists().With("edge_index", &index).With("edge_attr", &features).File(t, zip.Deflate), all)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		readtest.SmallBatches(t, src, many, columns)
	}
	nan := float32(math.NaN())
	strange, few := readtest.Of("(4, 1)", []float32{1, nan, 3, 4}), readtest.Of("(2, 2)", []float32{1, 2, 3, 4})
	turned := readtest.Of("(4, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8}).InFortranOrder()
	for want, a := range map[string]*readtest.NPY{
		"holds neither edge_feat nor edge_attr": nil,
		"give each edge a row of features":      &few,
		"save it with numpy.ascontiguousarray":  &turned,
	} {
		readtest.Refused(t, Open, readtest.Lists().With("edge_attr", a).File(t, zip.Store), all, want)
	}
	src, err := Open(t.Context(), readtest.Lists().With("edge_attr", &strange).File(t, zip.Store), all)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := readtest.Hold(t.Context(), src); err == nil || !strings.Contains(err.Error(), "entry 1 is NaN as a float32: give each edge finite features") {
		t.Errorf("a feature that is no number: %v", err)
	}
}

func TestWhatMayBeMissing(t *testing.T) {
	bare := readtest.Arrays{"edge_index": readtest.Lists()["edge_index"]}
	h := readtest.MustHold(t, Open, bare.File(t, zip.Deflate), source.Options{})
	if want := (graph.Meta{Format: "npz", Vertices: 5, Edges: 4}); !reflect.DeepEqual(h.Meta, want) || h.Labels != nil || h.Splits != nil {
		t.Errorf("edges alone are %+v, labels %v, splits %v", h.Meta, h.Labels, h.Splits)
	}
	if len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "the number of vertices, 5, was taken from the largest id") {
		t.Errorf("notes %q", h.Notes)
	}
	seven := readtest.Of("()", []int64{7})
	if h := readtest.MustHold(t, Open, bare.With("num_nodes", &seven).File(t, zip.Deflate), source.Options{}); h.Meta.Vertices != 7 {
		t.Errorf("num_nodes of 7 makes %d", h.Meta.Vertices)
	}
	none := readtest.Of("(2, 0)", []int64{})
	if h := readtest.MustHold(t, Open, readtest.Lists().With("edge_index", &none).File(t, zip.Deflate), source.Options{}); h.Meta.Edges != 0 || h.Meta.Vertices != 5 {
		t.Errorf("without edges it is %+v", h.Meta)
	}
	dense := readtest.Of("(3, 2)", []float64{1, 2, 3, 4, 5, 6})
	z := readtest.Matrices().With("attr_data", nil).With("attr_indices", nil).With("attr_indptr", nil).With("attr_shape", nil)
	if h := readtest.MustHold(t, Open, z.File(t, zip.Store), source.Options{}); h.Meta.Features != 0 || len(h.Features) != 0 {
		t.Errorf("without features it is %+v", h.Meta)
	}
	if h := readtest.MustHold(t, Open, z.With("attr_matrix", &dense).With("adj_data", nil).File(t, zip.Store), source.Options{}); h.Meta.Features != 2 || h.Meta.Sparse || !slices.Equal(h.Features[2], []readtest.Cell{{0, 5}, {1, 6}}) {
		t.Errorf("with dense features it is %+v", h.Meta)
	}
	train := readtest.Of("(2,)", []int32{2, 2})
	z = z.With("train_idx", &train).With("val_idx", nil).With("test_idx", nil)
	if h := readtest.MustHold(t, Open, z.File(t, zip.Store), source.Options{}); len(h.Splits) != 1 || !slices.Equal(h.Splits[0], []graph.Mark{0, 0, 1}) {
		t.Errorf("of one part, twice the same vertex: %v", h.Splits)
	}
}

func TestManySplits(t *testing.T) {
	z := readtest.Lists().With("val_mask", nil).With("test_mask", nil)
	a := readtest.Of("(5, 2)", []bool{true, false, false, true, false, false, true, true, false, false})
	want := [][]graph.Mark{{1, 0, 0, 1, 0}, {0, 1, 0, 1, 0}}
	if h := readtest.MustHold(t, Open, z.With("train_mask", &a).File(t, zip.Store), source.Options{}); !slices.EqualFunc(h.Splits, want, slices.Equal) {
		t.Errorf("splits %v", h.Splits)
	}
	a = readtest.Of("(5, 2)", []bool{true, false, false, true, false, false, true, false, true, false}).InFortranOrder()
	if h := readtest.MustHold(t, Open, z.With("train_mask", &a).File(t, zip.Store), source.Options{}); !slices.EqualFunc(h.Splits, want, slices.Equal) {
		t.Errorf("splits in Fortran order %v", h.Splits)
	}
}

func TestReadingEnds(t *testing.T) {
	for _, z := range []readtest.Arrays{readtest.Lists(), readtest.Matrices()} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			s, err := Open(t.Context(), z.File(t, method), source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			stop := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(stop)
			if err := s.Edges(ctx, func(graph.EdgeBatch) error { return nil }); !errors.Is(err, stop) {
				t.Errorf("edges end with %v", err)
			}
			if err := s.Features(ctx, func(graph.FeatureBatch) error { return nil }); !errors.Is(err, stop) {
				t.Errorf("features end with %v", err)
			}
			if err := s.Edges(t.Context(), func(graph.EdgeBatch) error { return stop }); err != stop { //nolint:errorlint // as it is
				t.Errorf("edges end with %v", err)
			}
			if err := s.Features(t.Context(), func(graph.FeatureBatch) error { return stop }); err != stop { //nolint:errorlint // as it is
				t.Errorf("features end with %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := Open(ctx, z.File(t, method), source.Options{}); !errors.Is(err, stop) {
				t.Errorf("opening ends with %v", err)
			}
		}
	}
}

// archiveIn reads an archive that lies in memory.
func archiveIn(ctx context.Context, name string, r io.ReaderAt, size int64, o source.Options) (graph.Source, error) {
	z, err := newArchive(name, r, size)
	if err != nil {
		return nil, err
	}
	return newNPZ(ctx, z, o)
}

// TestNamesOfClasses has labels as text of both kinds, and names beside numbers.
func TestNamesOfClasses(t *testing.T) {
	wide := func(words ...string) (b []byte) {
		for _, w := range words {
			for _, c := range (w + "\x00\x00\x00\x00")[:4] {
				b = append(b, byte(c), 0, 0, 0)
			}
		}
		return b
	}
	for name, z := range map[string]readtest.Arrays{
		"U":     readtest.Lists().With("y", &readtest.NPY{Descr: "<U4", Shape: "(5,)", Data: wide("b", "cc", "", "a", "b")}),
		"S":     readtest.Lists().With("y", &readtest.NPY{Descr: "|S2", Shape: "(5, 1)", Data: []byte("b\x00cc\x00\x00a\x00b\x00")}),
		"names": readtest.Lists().With("y", new(readtest.Of("(5,)", []int64{1, 2, -1, 0, 1}))).With("class_names", &readtest.NPY{Descr: "|S2", Shape: "(3,)", Data: []byte("a\x00b\x00cc")}),
	} {
		h := readtest.MustHold(t, Open, z.File(t, zip.Deflate), source.Options{})
		if !slices.Equal(h.Labels, []int32{1, 2, -1, 0, 1}) || !slices.Equal(h.Meta.ClassNames, []string{"a", "b", "cc"}) || h.Meta.Classes != 3 {
			t.Errorf("%s: %v, %+v", name, h.Labels, h.Meta)
		}
	}
	h := readtest.MustHold(t, Open, readtest.Lists().With("class_names", &readtest.NPY{Descr: "|S1", Shape: "(2,)", Data: []byte("ab")}).File(t, zip.Deflate), source.Options{})
	if h.Meta.ClassNames != nil || !slices.Equal(h.Notes, []string{"g.npz: the array class_names was not used."}) {
		t.Errorf("two names of three classes: %+v, %q", h.Meta, h.Notes)
	}
	_, err := Open(t.Context(), readtest.Lists().With("x", &readtest.NPY{Descr: "|S1", Shape: "(5, 1)", Data: []byte("abcde")}).File(t, zip.Deflate), source.Options{})
	if err == nil || !strings.Contains(err.Error(), `x: it holds "|S1", and only integers, booleans and floats`) {
		t.Error(err)
	}
}
