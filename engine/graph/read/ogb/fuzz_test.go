package ogb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// FuzzOGB puts anything in place of one of the packed tables.
func FuzzOGB(f *testing.F) {
	names := []string{ogbEdges, ogbFeatures, ogbLabels, ogbVertices, ogbCount, ogbAlong}
	raw := readtest.OGB().With("raw/"+ogbAlong, "1,2\n3,4\n5,-6e3\n7,8\n")
	for i, name := range names {
		f.Add(byte(i), []byte(raw["raw/"+name]))
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		dir := raw.With("raw/"+names[int(which)%len(names)], string(b)).Write(t)
		defer func() {
			if err := os.RemoveAll(filepath.Join(dir, "raw")); err != nil {
				t.Error(err)
			}
		}()
		readtest.Within(t, 128<<20, func() {
			s, err := Open(t.Context(), dir, source.Options{EdgeFeatures: []string{"all"}})
			if err != nil {
				return
			}
			defer s.Close()
			readtest.Consistent(t, s)
		})
	})
}
