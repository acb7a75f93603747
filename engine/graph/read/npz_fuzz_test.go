package read

import (
	"archive/zip"
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// within fails if f allocates more than some bytes, however they are used.
func within(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes are allocated, more than %d", used, most)
	}
}

// What an archive inflates to is bounded by deflate's ratio; what a batch takes is
// free.
func FuzzNPZ(f *testing.F) {
	for _, z := range []arrays{lists(), matrices(), {"edge_index": lists()["edge_index"]}} {
		f.Add(z.bytes(f, zip.Store))
		f.Add(z.bytes(f, zip.Deflate))
	}
	weight := of("(4,)", []float32{1, 2, 3, 4})
	pairs := of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).inFortranOrder()
	f.Add(lists().with("edge_weight", &weight).with("edge_index", &pairs).bytes(f, zip.Store))
	f.Fuzz(func(t *testing.T, b []byte) {
		const free, perByte, memory = 64 << 20, 64 * maxInflation, 16 << 20
		within(t, free+perByte*uint64(len(b)), func() {
			s, err := archiveIn(context.Background(), "f.npz", bytes.NewReader(b), int64(len(b)), Options{Memory: memory})
			if err != nil {
				return
			}
			defer s.Close()
			consistent(t, s)
		})
	})
}

// consistent reads a source that may be large beyond its file, for a while.
func consistent(t *testing.T, s graph.Source) {
	m := s.Meta()
	if m.Vertices == 0 || m.Vertices > graph.MaxVertices || m.Classes < 0 || m.Features < 0 {
		t.Errorf("it is %+v", m)
	}
	edges, rows := uint64(0), uint32(0)
	if err := s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		edges += uint64(len(b.Src))
		for i, src := range b.Src {
			if src >= m.Vertices || b.Dst[i] >= m.Vertices {
				t.Fatalf("an edge from %d to %d of %d", src, b.Dst[i], m.Vertices)
			}
		}
		if len(b.Src) != len(b.Dst) || (b.Weights != nil) != m.Weighted || notFinite(b.Weights) >= 0 {
			t.Fatal("a batch is not whole")
		}
		return nil
	}); err == nil && edges != m.Edges {
		t.Errorf("%d edges, not %d", edges, m.Edges)
	} else if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("not a sentence: %v", err)
	}
	nonZeros := uint64(0)
	if err := s.Features(t.Context(), func(b graph.FeatureBatch) error {
		if m.Sparse {
			for i, from := range b.Indptr[:len(b.Indptr)-1] {
				row := b.Indices[from:b.Indptr[i+1]]
				for j, c := range row {
					if int(c) >= m.Features || j > 0 && row[j-1] >= c {
						t.Fatal("columns out of order")
					}
				}
				nonZeros += uint64(len(row))
				rows++
			}
		} else {
			rows += uint32(len(b.Dense) / m.Features)
		}
		if notFinite(b.Dense) >= 0 || notFinite(b.Values) >= 0 {
			t.Fatal("a feature is not finite")
		}
		return nil
	}); err == nil && (rows > m.Vertices || m.Features > 0 && m.Format == "npz" && rows != m.Vertices || nonZeros != m.NonZeros) {
		t.Errorf("%d rows with %d entries of %+v", rows, nonZeros, m)
	}
	if s.Labels() != nil && len(s.Labels()) != int(m.Vertices) {
		t.Errorf("%d labels of %d vertices", len(s.Labels()), m.Vertices)
	}
	for _, split := range s.Splits() {
		if len(split) != int(m.Vertices) {
			t.Errorf("%d marks of %d vertices", len(split), m.Vertices)
		}
	}
}

func FuzzNPYHeader(f *testing.F) {
	for _, a := range lists() {
		f.Add(a.bytes())
	}
	for version := byte(2); version < 5; version++ {
		a := of("(2L,)", []int32{1, 2})
		a.version = version
		f.Add(a.bytes())
	}
	f.Add(npy{descr: "|O", shape: "()"}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		within(t, 256<<10+16*uint64(len(b)), func() {
			h, err := readNPYHeader(bytes.NewReader(b))
			if err != nil {
				return
			}
			n, ok := h.count()
			if !ok || h.length > len(b) || h.size < 1 || h.size > 8 || len(h.shape) > 32 {
				t.Errorf("%+v of %d numbers", h, n)
			}
			if n <= uint64(len(b)-h.length)/uint64(h.size) {
				ints, floats := make([]int64, n), make([]float32, n)
				if !h.float() {
					h.ints(ints, b[h.length:])
				}
				h.floats(floats, b[h.length:])
				h.vertices(make([]uint32, n), b[h.length:], graph.MaxVertices)
			}
		})
	})
}
