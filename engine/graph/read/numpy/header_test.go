package numpy

import (
	"bytes"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
)

func FuzzNPYHeader(f *testing.F) {
	for _, a := range readtest.Lists() {
		f.Add(a.Bytes())
	}
	for version := byte(2); version < 5; version++ {
		a := readtest.Of("(2L,)", []int32{1, 2})
		a.Version = version
		f.Add(a.Bytes())
	}
	f.Add(readtest.NPY{Descr: "|O", Shape: "()"}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		readtest.Within(t, 256<<10+16*uint64(len(b)), func() {
			h, err := ReadHeader(bytes.NewReader(b))
			if err != nil {
				return
			}
			n, ok := h.Count()
			if !ok || h.Length > len(b) || h.Size < 1 || h.Size > 8 || len(h.Shape) > 32 {
				t.Errorf("%+v of %d numbers", h, n)
			}
			if n <= uint64(len(b)-h.Length)/uint64(h.Size) {
				ints, floats := make([]int64, n), make([]float32, n)
				if !h.Float() {
					h.Ints(ints, b[h.Length:])
				}
				h.Floats(floats, b[h.Length:])
				h.Vertices(make([]uint32, n), b[h.Length:], graph.MaxVertices)
			}
		})
	})
}
