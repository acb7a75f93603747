package planetoid

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func FuzzPickle(f *testing.F) {
	files, err := filepath.Glob("../testdata/planetoid/*/ind.*")
	if err != nil || len(files) < 20 {
		f.Fatal(len(files), err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("cos\nsystem\n(S'true'\ntR."))
	f.Add([]byte("\x80\x02](]q\x00h\x00e2\x85\x86}(K\x01K\x02ud."))
	f.Fuzz(func(t *testing.T, b []byte) {
		readtest.Within(t, 256<<10+256*uint64(len(b)), func() {
			v, err := unpickle(t.Context(), bytes.NewReader(b), int64(len(b)), new(source.Memory))
			if err != nil {
				return
			}
			m, ok := v.(*pyMatrix)
			if !ok {
				return
			}
			rows, err := m.rows()
			if err != nil {
				return
			}
			for i, end := range rows.indptr[1:] {
				if end < rows.indptr[i] || end > int64(len(rows.indices)) || len(rows.indices) != len(rows.values) {
					t.Fatalf("row %d ends at %d", i, end)
				}
			}
		})
	})
}

// FuzzPlanetoid puts anything in place of one of the files.
func FuzzPlanetoid(f *testing.F) {
	for i, ending := range planetoidFiles {
		b, err := os.ReadFile("../testdata/planetoid/python2/ind.python2" + ending)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), b)
	}
	dir := f.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/planetoid/python2")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		path := filepath.Join(dir, "ind.python2"+planetoidFiles[int(which)%len(planetoidFiles)])
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Error(err)
			}
		}()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		readtest.Within(t, 8<<20+512*uint64(len(b)), func() {
			s, err := Open(t.Context(), dir, source.Options{Format: "planetoid"})
			if err != nil {
				return
			}
			defer s.Close()
			readtest.Consistent(t, s)
		})
	})
}
