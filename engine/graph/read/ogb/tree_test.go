package ogb

import (
	"archive/zip"
	"bytes"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// zipped returns an archive of a folder as a server has it: with names of folders, too, and with
// something beside them.
func zipped(t *testing.T, f readtest.Folder, inside string, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := f.Write(t)
	add(path.Join(inside, "raw")+"/", nil)
	add(path.Join(inside, "RELEASE_v1.txt"), []byte("about"))
	for name := range f {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		add(path.Join(inside, name), content)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An archive is read as the folder in it is.
func TestOGBInAnArchive(t *testing.T) {
	here := readtest.MustHold(t, Open, readtest.OGB().Write(t), source.Options{})
	for _, inside := range []string{"", "arxiv", "a/b"} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			file := readtest.Put(t, "arxiv.ZIP", zipped(t, readtest.OGB(), inside, method))
			there := readtest.MustHold(t, Open, file, source.Options{})
			if note := "Not read of arxiv.ZIP: RELEASE_v1.txt."; len(there.Notes) < 3 || there.Notes[1] != note {
				t.Errorf("notes %q", there.Notes)
			}
			here.Notes, there.Notes = nil, nil
			if !reflect.DeepEqual(here, there) {
				t.Errorf("in %q it is %+v and not %+v", inside, there, here)
			}
		}
	}
}

func TestOGBArchivesThatAreRefused(t *testing.T) {
	two := append([]byte{}, zipped(t, readtest.OGB(), "x", zip.Store)...)
	both := func() []byte {
		f := readtest.Folder{}
		for name, content := range readtest.OGB() {
			f["a/"+name], f["b/"+name] = content, content
		}
		return zipped(t, f, "", zip.Store)
	}
	for want, content := range map[string][]byte{
		"g.zip is empty: copy it again":                                         nil,
		"g.zip is not a complete zip archive":                                   two[:len(two)/2],
		"g.zip has several graphs in it, in ":                                   both(),
		"g.zip has no folder with raw/edge.csv.gz or raw/data.npz in it":        zipped(t, readtest.Folder{"x.csv": "1"}, "", zip.Store),
		"which is read at many places: unpack it, and give the folder that raw": zipped(t, packed(t), "papers100M-bin", zip.Deflate),
		"num-edge-list.csv.gz is missing: the archive has no num-edge-list":     zipped(t, readtest.OGB().Without("raw/num-edge-list.csv.gz"), "x", zip.Store),
	} {
		readtest.Refused(t, Open, readtest.Put(t, "g.zip", content), source.Options{}, want)
	}
	// What has changed on its way is noticed by the archive's sums, or by those of the table.
	at := bytes.Index(two, []byte("x/raw/edge.csv.gz")) + len("x/raw/edge.csv.gz") + 12
	two[at] ^= 1
	s, err := Open(t.Context(), readtest.Put(t, "g.zip", two), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if h, err := readtest.Hold(t.Context(), s); err == nil {
		t.Errorf("it is taken for %+v", h.Edges)
	}
}

// Whatever an archive claims, little memory is taken for it.
func FuzzArchive(f *testing.F) {
	for _, content := range []string{"PK\x05\x06", strings.Repeat("PK\x01\x02", 20) + "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff"} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		file := filepath.Join(t.TempDir(), "g.zip")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		readtest.Within(t, 128<<20, func() {
			s, err := Open(t.Context(), file, source.Options{})
			if err != nil {
				return
			}
			defer s.Close()
			readtest.Consistent(t, s)
		})
	})
}
