package read

import (
	"archive/zip"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestDetection(t *testing.T) {
	npz := string(readtest.Lists().Bytes(t, zip.Store))
	for want, path := range map[string]string{
		"npz":       readtest.Folder{"some.NPZ": npz}.Write(t) + "/some.NPZ",
		"ogb":       readtest.OGB().Write(t),
		"planetoid": "testdata/planetoid/text",
		"csv":       readtest.Folder{"edges.tsv.gz": "0\t1\n1\t2\n"}.Write(t),
	} {
		if h := readtest.MustHold(t, Open, path, source.Options{}); h.Meta.Format != want {
			t.Errorf("%s is taken as %s, not %s", path, h.Meta.Format, want)
		}
		if h := readtest.MustHold(t, Open, path, source.Options{Format: want}); h.Meta.Format != want {
			t.Errorf("%s is taken as %s, not %s", path, h.Meta.Format, want)
		}
	}
	for name, want := range map[string]string{"edges.csv": "csv", "a.b.tsv": "csv", "E.TXT.GZ": "csv", "e.parquet": "parquet", "e.arrow": "parquet", "e.feather": "parquet", "ind.a.b.test.index": "planetoid", "g.npz": "npz"} {
		got, err := detect(t.Context(), readtest.Folder{name: ""}.Write(t)+"/"+name)
		if err != nil || got != want {
			t.Errorf("%s is %q: %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"edges.csv.gz": "csv", "edges.txt": "csv", "EDGES.parquet": "parquet", "edges.feather": "parquet", "ind.cora.graph": "planetoid", "raw/data.npz": "ogb"} {
		got, err := detect(t.Context(), readtest.Folder{name: "", "features.csv": "", "other.bin": ""}.Write(t))
		if err != nil || got != want {
			t.Errorf("a folder with %s is %q: %v", name, got, err)
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	readtest.Refused(t, Open, dir, source.Options{Format: "excel"}, `the format "excel" is not known: give auto, npz, planetoid, ogb, csv, parquet, typed or triples`)
	readtest.Refused(t, Open, filepath.Join(dir, "none"), source.Options{}, "there is no file or folder "+filepath.Join(dir, "none")+" on this machine: check the path")
	readtest.Refused(t, Open, dir, source.Options{}, dir+" holds no graph that is known by its files' names (ind.NAME.x and its like of Planetoid, raw/ and split/ of OGB, edges.csv or edges.parquet, train.txt and test.txt of triples, or part files of Parquet): check the path, or rename the file with the edges")
	readtest.Refused(t, Open, readtest.Put(t, "graph.xlsx", nil), source.Options{}, "graph.xlsx does not say by its name what it is (.npz, .zip, ind.NAME.x, .csv, .tsv, .txt with or without .gz, .parquet, .arrow or .feather): rename it, or give the format")
	readtest.Refused(t, Open, filepath.Dir(readtest.Put(t, "g.npz", nil)), source.Options{}, " is a folder with g.npz in it: give the path of that file")
	table := readtest.Put(t, "edges.csv", []byte("0,1\n1,2\n"))
	readtest.Refused(t, Open, table, source.Options{Task: "regression"}, "{dataset.task} is regression, and there is no table of labels or nodes beside the edges: put a file called labels or nodes into the folder with the edges")
	readtest.Refused(t, Open, table, source.Options{LabelColumns: []string{"a", "b"}}, "{dataset.label_columns} names a, b, and there is no table of labels or nodes beside the edges: put a file called labels or nodes into the folder with the edges")
	readtest.Refused(t, Open, readtest.Lists().File(t, zip.Store), source.Options{LabelColumns: []string{"a"}}, "{dataset.label_columns} names columns of tables (csv, parquet), and a source of the format npz has none with names: leave it out")
	readtest.Refused(t, Open, readtest.OGB().Write(t), source.Options{Task: "regression"}, "labels of the format ogb are read as one class for each vertex: leave {dataset.task} regression out, or save the graph as tables or npz with a column for each target")
	readtest.Refused(t, Open, table, source.Options{Task: "links"}, `{dataset.task} is "links": give class, multilabel or regression`)
	both := readtest.Folder{"edges.csv": "", "ind.a.x": ""}.Write(t)
	readtest.Refused(t, Open, both, source.Options{}, both+" holds files of the formats csv and planetoid: give the format that is meant")
	readtest.Refused(t, Open, os.DevNull, source.Options{}, os.DevNull+" is neither a file nor a folder: copy what it holds to a file first")
	readtest.Refused(t, Open, "/dev/zero", source.Options{Format: "npz"}, "/dev/zero is neither a file nor a folder")
	pipe := filepath.Join(dir, "pipe.npz")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	readtest.Refused(t, Open, pipe, source.Options{}, "pipe.npz is neither a file nor a folder")
	l, err := net.Listen("unix", filepath.Join(dir, "s.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	readtest.Refused(t, Open, filepath.Join(dir, "s.csv"), source.Options{}, "s.csv is neither a file nor a folder")
	// A pipe in place of one of a folder's files.
	tiny := t.TempDir()
	if err := os.CopyFS(tiny, os.DirFS("testdata/planetoid/python2")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ind.python2.graph", "ind.python2.test.index"} {
		path := filepath.Join(tiny, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		readtest.Refused(t, Open, tiny, source.Options{}, name+" is neither a file nor a folder")
	}
	readtest.Refused(t, Open, readtest.Put(t, "data.pt", nil), source.Options{}, "data.pt holds Python objects, and loading them can run anything")
	readtest.Refused(t, Open, readtest.Folder{"data.pt": "", "pre_filter.pt": "", "x.txt": ""}.Write(t), source.Options{}, "np.savez('data.npz'")
	if os.Getuid() != 0 {
		secret := readtest.Put(t, "secret.npz", nil)
		if err := os.Chmod(secret, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), secret, source.Options{}); err == nil || !strings.Contains(err.Error(), "permission") {
			t.Errorf("a file that may not be read: %v", err)
		}
	}
}

func TestWhatIsNotReadOfAFolderIsNamed(t *testing.T) {
	tiny := t.TempDir()
	if err := os.CopyFS(tiny, os.DirFS("testdata/planetoid/python2")); err != nil {
		t.Fatal(err)
	}
	ogb := readtest.OGB().Write(t)
	for dir, files := range map[string]string{tiny: "trans.python2.x", ogb: "RELEASE_v1.txt"} {
		for _, name := range []string{files, ".hidden", "_SUCCESS"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(t.Context(), dir, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if want := "Not read of " + filepath.Base(dir) + ": " + files + "."; !slices.Contains(s.Notes(), want) {
			t.Errorf("%q has no %q", s.Notes(), want)
		}
	}
}
