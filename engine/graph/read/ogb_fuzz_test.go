package read

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzOGB puts anything in place of one of the packed tables.
func FuzzOGB(f *testing.F) {
	names := []string{ogbEdges, ogbFeatures, ogbLabels, ogbVertices, ogbCount}
	raw := ogbRaw()
	for i, name := range names {
		f.Add(byte(i), []byte(raw["raw/"+name]))
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		dir := raw.with("raw/"+names[int(which)%len(names)], string(b)).write(t)
		defer func() {
			if err := os.RemoveAll(filepath.Join(dir, "raw")); err != nil {
				t.Error(err)
			}
		}()
		within(t, 128<<20, func() {
			s, err := Open(t.Context(), dir, Options{})
			if err != nil {
				return
			}
			defer s.Close()
			consistent(t, s)
		})
	})
}
