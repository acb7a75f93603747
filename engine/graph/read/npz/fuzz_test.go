package npz

import (
	"archive/zip"
	"bytes"
	"context"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// What an archive inflates to is bounded by deflate's ratio; what a batch takes is
// free.
func FuzzNPZ(f *testing.F) {
	for _, z := range []readtest.Arrays{readtest.Lists(), readtest.Matrices(), {"edge_index": readtest.Lists()["edge_index"]}} {
		f.Add(z.Bytes(f, zip.Store))
		f.Add(z.Bytes(f, zip.Deflate))
	}
	weight := readtest.Of("(4,)", []float32{1, 2, 3, 4})
	pairs := readtest.Of("(2, 4)", []int64{0, 1, 1, 2, 2, 0, 4, 4}).InFortranOrder()
	f.Add(readtest.Lists().With("edge_weight", &weight).With("edge_index", &pairs).Bytes(f, zip.Store))
	test, no := readtest.Of("(2, 1)", []int64{0, 3}), readtest.Of("(2, 2)", []uint32{1, 0, 4, 1})
	f.Add(readtest.Lists().With("edges_test", &test).With("negatives_test", &no).Bytes(f, zip.Store))
	f.Add([]byte(claiming(1<<40, 98)))
	f.Fuzz(func(t *testing.T, b []byte) {
		const free, perByte, memory = 64 << 20, 64 * maxInflation, 16 << 20
		readtest.Within(t, free+perByte*uint64(len(b)), func() {
			s, err := archiveIn(context.Background(), "f.npz", bytes.NewReader(b), int64(len(b)), source.Options{Memory: memory})
			if err != nil {
				return
			}
			defer s.Close()
			readtest.Consistent(t, s)
		})
	})
}
