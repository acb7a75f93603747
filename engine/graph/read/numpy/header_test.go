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
	f.Add(readtest.NPY{Descr: ">U2", Shape: "(2,)", Data: []byte("\x00\x00\x00a\x00\x00\x00b\x00\xff\x00c\x00\x00\x00\x00")}.Bytes())
	f.Add(readtest.NPY{Descr: "|S2", Shape: "(2,)", Data: []byte("ab\x00\x00")}.Bytes())
	f.Add(readtest.NPY{Descr: "|O", Shape: "()"}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		readtest.Within(t, 256<<10+16*uint64(len(b)), func() {
			if h, err := ReadAnyHeader(bytes.NewReader(b)); err == nil && h.Text() {
				var out []byte
				for i := range (len(b) - h.Length) / h.Size {
					out = h.Append(out[:0], b[h.Length:], i)
				}
				return
			}
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
