package read

import (
	"archive/zip"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

func TestLists(t *testing.T) {
	for name, method := range map[string]uint16{"stored": zip.Store, "deflated": zip.Deflate} {
		t.Run(name, func(t *testing.T) {
			h := mustHold(t, lists().file(t, method), Options{})
			if want := (graph.Meta{Format: "npz", Vertices: 5, Edges: 4, Features: 2, Classes: 3}); h.meta != want {
				t.Errorf("it is %+v", h.meta)
			}
			if want := [][2]uint32{{0, 1}, {1, 2}, {2, 0}, {4, 4}}; !slices.Equal(h.edges, want) {
				t.Errorf("edges %v", h.edges)
			}
			if !slices.Equal(h.labels, []int32{0, 1, -1, 2, 0}) || len(h.splits) != 1 || !slices.Equal(h.splits[0], []graph.Mark{1, 2, 1, 3, 0}) {
				t.Errorf("labels %v, splits %v", h.labels, h.splits)
			}
			if !slices.Equal(h.features[4], []cell{{0, 9}, {1, 10}}) || len(h.features) != 5 {
				t.Errorf("features %v", h.features)
			}
			if h.notes != nil {
				t.Errorf("notes %q", h.notes)
			}
		})
	}
}

func TestMatrices(t *testing.T) {
	for name, method := range map[string]uint16{"stored": zip.Store, "deflated": zip.Deflate} {
		t.Run(name, func(t *testing.T) {
			h := mustHold(t, matrices().file(t, method), Options{})
			if want := (graph.Meta{Format: "npz", Vertices: 3, Edges: 4, Features: 4, Sparse: true, NonZeros: 4, Classes: 2}); h.meta != want {
				t.Errorf("it is %+v", h.meta)
			}
			// A row is a source, its columns are targets.
			if want := [][2]uint32{{0, 1}, {0, 2}, {2, 0}, {2, 0}}; !slices.Equal(h.edges, want) {
				t.Errorf("edges %v", h.edges)
			}
			if !slices.Equal(h.features[0], []cell{{0, 6}, {3, 5}}) || len(h.features[1]) != 0 || !slices.Equal(h.features[2], []cell{{1, 7}, {2, 8}}) {
				t.Errorf("features %v", h.features)
			}
			if len(h.splits) != 2 || !slices.Equal(h.splits[0], []graph.Mark{1, 2, 3}) || !slices.Equal(h.splits[1], []graph.Mark{3, 1, 2}) {
				t.Errorf("splits %v", h.splits)
			}
		})
	}
}

// Whatever the types, the graph is the same.
func TestNumberTypes(t *testing.T) {
	want := mustHold(t, lists().file(t, zip.Store), Options{})
	same := func(t *testing.T, z arrays) *held {
		t.Helper()
		h := mustHold(t, z.file(t, zip.Deflate), Options{})
		if !slices.Equal(h.edges, want.edges) || !slices.Equal(h.labels, want.labels) || !slices.Equal(h.splits[0], want.splits[0]) {
			t.Errorf("edges %v, labels %v, splits %v", h.edges, h.labels, h.splits)
		}
		for v, row := range want.features {
			if !slices.Equal(h.features[v], row) {
				t.Errorf("vertex %d has %v", v, h.features[v])
			}
		}
		return h
	}
	nan := math.NaN()
	for name, a := range map[string]struct {
		key string
		npy npy
	}{
		"int8 edges":     {"edge_index", of("(2, 4)", []int8{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint8 edges":    {"edge_index", of("(2, 4)", []uint8{0, 1, 2, 4, 1, 2, 0, 4})},
		"int16 edges":    {"edge_index", of("(2, 4)", []int16{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint16 edges":   {"edge_index", big(">u2", "(2, 4)", []uint16{0, 1, 2, 4, 1, 2, 0, 4})},
		"int32 edges":    {"edge_index", of("(2, 4)", []int32{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint32 edges":   {"edge_index", of("(2, 4)", []uint32{0, 1, 2, 4, 1, 2, 0, 4})},
		"int32 swapped":  {"edge_index", big(">i4", "(2, 4)", []int32{0, 1, 2, 4, 1, 2, 0, 4})},
		"int64 swapped":  {"edge_index", big(">i8", "(2, 4)", []int64{0, 1, 2, 4, 1, 2, 0, 4})},
		"uint64 edges":   {"edge_index", of("(2, 4)", []uint64{0, 1, 2, 4, 1, 2, 0, 4})},
		"transposed":     {"edge_index", of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).inFortranOrder()},
		"float64":        {"x", of("(5, 2)", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float32":        {"x", big(">f4", "(5, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float64 large":  {"x", big(">f8", "(5, 2)", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float16":        {"x", of("(5, 2)", []uint16{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800, 0x4880, 0x4900}).as("<f2")},
		"int features":   {"x", of("(5, 2)", []int16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"version 2":      {"x", func() npy { a := lists()["x"]; a.version = 2; return a }()},
		"version 3":      {"x", func() npy { a := lists()["x"]; a.version = 3; return a }()},
		"sizes as 5L":    {"x", of("(5L, 2L)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		"float labels":   {"y", of("(5, 1)", []float64{0, 1, nan, 2, 0})},
		"float32 labels": {"y", of("(5,)", []float32{0, 1, -1, 2, 0})},
		"int8 labels":    {"y", of("(5, 1)", []int8{0, 1, -1, 2, 0})},
		"a mask of ints": {"val_mask", of("(5, 1)", []int64{0, 1, 0, 0, 0})},
	} {
		t.Run(name, func(t *testing.T) { same(t, lists().with(a.key, &a.npy)) })
	}
	for _, count := range []npy{of("()", []int64{5}), of("(1,)", []int32{5}), of("(1, 1)", []uint8{5})} {
		same(t, lists().with("num_nodes", &count))
	}
	other := of("(1,)", []int8{0})
	if h := same(t, lists().with("node_year", &other)); len(h.notes) != 1 || h.notes[0] != "g.npz: the array node_year was not used." {
		t.Errorf("notes %q", h.notes)
	}
}

func TestNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	v := make([]float32, 5000)
	for i := range v {
		v[i] = math.MaxFloat32 * float32(1-2*(i%2))
	}
	if at := notFinite(v); at != -1 {
		t.Errorf("number %d of finite ones is not", at)
	}
	for _, at := range []int{0, 1023, 1024, 4999} {
		for _, bad := range []float32{inf, -inf, float32(math.NaN()), math.Float32frombits(0xff800001)} {
			was := v[at]
			v[at] = bad
			if got := notFinite(v); got != at {
				t.Errorf("%v at %d is found at %d", bad, at, got)
			}
			v[at] = was
		}
	}
}

func TestWeights(t *testing.T) {
	for key, a := range map[string]npy{"edge_weight": of("(4,)", []float64{0.5, 1, 1, -2}), "edge_attr": of("(4, 1)", []float32{0.5, 1, 1, -2})} {
		h := mustHold(t, lists().with(key, &a).file(t, zip.Deflate), Options{})
		if !h.meta.Weighted || !slices.Equal(h.weights, []float32{0.5, 1, 1, -2}) {
			t.Errorf("%s: weights %v", key, h.weights)
		}
		pairs := of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).inFortranOrder()
		if h := mustHold(t, lists().with(key, &a).with("edge_index", &pairs).file(t, zip.Store), Options{}); !slices.Equal(h.weights, []float32{0.5, 1, 1, -2}) {
			t.Errorf("%s: weights of pairs %v", key, h.weights)
		}
	}
	ones := of("(4,)", []int64{1, 1, 1, 1})
	if h := mustHold(t, lists().with("edge_weight", &ones).file(t, zip.Store), Options{}); h.meta.Weighted || len(h.notes) != 1 || !strings.Contains(h.notes[0], "each weight in edge_weight is 1") {
		t.Errorf("weights of 1: %+v, %q", h.meta, h.notes)
	}
	wide := of("(4, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8})
	if h := mustHold(t, lists().with("edge_attr", &wide).file(t, zip.Store), Options{}); h.meta.Weighted || len(h.notes) != 1 || !strings.Contains(h.notes[0], "edge_attr was not used") {
		t.Errorf("wide edge_attr: %+v, %q", h.meta, h.notes)
	}
	data := of("(4,)", []float32{1, 2, 3, 4})
	if h := mustHold(t, matrices().with("adj_data", &data).file(t, zip.Store), Options{}); !slices.Equal(h.weights, []float32{1, 2, 3, 4}) {
		t.Errorf("weights of a matrix %v", h.weights)
	}
}

func TestWhatMayBeMissing(t *testing.T) {
	bare := arrays{"edge_index": lists()["edge_index"]}
	h := mustHold(t, bare.file(t, zip.Deflate), Options{})
	if want := (graph.Meta{Format: "npz", Vertices: 5, Edges: 4}); h.meta != want || h.labels != nil || h.splits != nil {
		t.Errorf("edges alone are %+v, labels %v, splits %v", h.meta, h.labels, h.splits)
	}
	if len(h.notes) != 1 || !strings.Contains(h.notes[0], "the number of vertices, 5, was taken from the largest id") {
		t.Errorf("notes %q", h.notes)
	}
	seven := of("()", []int64{7})
	if h := mustHold(t, bare.with("num_nodes", &seven).file(t, zip.Deflate), Options{}); h.meta.Vertices != 7 {
		t.Errorf("num_nodes of 7 makes %d", h.meta.Vertices)
	}
	none := of("(2, 0)", []int64{})
	if h := mustHold(t, lists().with("edge_index", &none).file(t, zip.Deflate), Options{}); h.meta.Edges != 0 || h.meta.Vertices != 5 {
		t.Errorf("without edges it is %+v", h.meta)
	}
	dense := of("(3, 2)", []float64{1, 2, 3, 4, 5, 6})
	z := matrices().with("attr_data", nil).with("attr_indices", nil).with("attr_indptr", nil).with("attr_shape", nil)
	if h := mustHold(t, z.file(t, zip.Store), Options{}); h.meta.Features != 0 || len(h.features) != 0 {
		t.Errorf("without features it is %+v", h.meta)
	}
	if h := mustHold(t, z.with("attr_matrix", &dense).with("adj_data", nil).file(t, zip.Store), Options{}); h.meta.Features != 2 || h.meta.Sparse || !slices.Equal(h.features[2], []cell{{0, 5}, {1, 6}}) {
		t.Errorf("with dense features it is %+v", h.meta)
	}
	train := of("(2,)", []int32{2, 2})
	z = z.with("train_idx", &train).with("val_idx", nil).with("test_idx", nil)
	if h := mustHold(t, z.file(t, zip.Store), Options{}); len(h.splits) != 1 || !slices.Equal(h.splits[0], []graph.Mark{0, 0, 1}) {
		t.Errorf("of one part, twice the same vertex: %v", h.splits)
	}
}

func TestManySplits(t *testing.T) {
	z := lists().with("val_mask", nil).with("test_mask", nil)
	a := of("(5, 2)", []bool{true, false, false, true, false, false, true, true, false, false})
	want := [][]graph.Mark{{1, 0, 0, 1, 0}, {0, 1, 0, 1, 0}}
	if h := mustHold(t, z.with("train_mask", &a).file(t, zip.Store), Options{}); !slices.EqualFunc(h.splits, want, slices.Equal) {
		t.Errorf("splits %v", h.splits)
	}
	a = of("(5, 2)", []bool{true, false, false, true, false, false, true, false, true, false}).inFortranOrder()
	if h := mustHold(t, z.with("train_mask", &a).file(t, zip.Store), Options{}); !slices.EqualFunc(h.splits, want, slices.Equal) {
		t.Errorf("splits in Fortran order %v", h.splits)
	}
}

func TestReadingEnds(t *testing.T) {
	for _, z := range []arrays{lists(), matrices()} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			s, err := Open(t.Context(), z.file(t, method), Options{})
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
			if _, err := Open(ctx, z.file(t, method), Options{}); !errors.Is(err, stop) {
				t.Errorf("opening ends with %v", err)
			}
		}
	}
}
