package read

import (
	"archive/zip"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDetection(t *testing.T) {
	npz := string(lists().bytes(t, zip.Store))
	for want, path := range map[string]string{
		"npz":       ogbFolder{"some.NPZ": npz}.write(t) + "/some.NPZ",
		"ogb":       ogbRaw().write(t),
		"planetoid": "testdata/planetoid/text",
		"csv":       ogbFolder{"edges.tsv.gz": "0\t1\n1\t2\n"}.write(t),
	} {
		if h := mustHold(t, path, Options{}); h.meta.Format != want {
			t.Errorf("%s is taken as %s, not %s", path, h.meta.Format, want)
		}
		if h := mustHold(t, path, Options{Format: want}); h.meta.Format != want {
			t.Errorf("%s is taken as %s, not %s", path, h.meta.Format, want)
		}
	}
	for name, want := range map[string]string{"edges.csv": "csv", "a.b.tsv": "csv", "E.TXT.GZ": "csv", "e.parquet": "parquet", "e.arrow": "parquet", "e.feather": "parquet", "ind.a.b.test.index": "planetoid", "g.npz": "npz"} {
		got, err := detect(ogbFolder{name: ""}.write(t) + "/" + name)
		if err != nil || got != want {
			t.Errorf("%s is %q: %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"edges.csv.gz": "csv", "edges.txt": "csv", "EDGES.parquet": "parquet", "edges.feather": "parquet", "ind.cora.graph": "planetoid", "raw/data.npz": "ogb"} {
		got, err := detect(ogbFolder{name: "", "features.csv": "", "other.bin": ""}.write(t))
		if err != nil || got != want {
			t.Errorf("a folder with %s is %q: %v", name, got, err)
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	refused(t, dir, Options{Format: "excel"}, `the format "excel" is not known: give auto, npz, planetoid, ogb, csv or parquet`)
	refused(t, filepath.Join(dir, "none"), Options{}, "there is no file or folder "+filepath.Join(dir, "none")+" on this machine: check the path")
	refused(t, dir, Options{}, dir+" holds no graph that is known by its files' names (ind.NAME.x and its like of Planetoid, raw/ and split/ of OGB, edges.csv or edges.parquet): check the path, or rename the file with the edges")
	refused(t, put(t, "graph.xlsx", nil), Options{}, "graph.xlsx does not say by its name what it is (.npz, ind.NAME.x, .csv, .tsv, .txt with or without .gz, .parquet, .arrow or .feather): rename it, or give the format")
	refused(t, filepath.Dir(put(t, "g.npz", nil)), Options{}, " is a folder with g.npz in it: give the path of that file")
	both := ogbFolder{"edges.csv": "", "ind.a.x": ""}.write(t)
	refused(t, both, Options{}, both+" holds files of the formats csv and planetoid: give the format that is meant")
	refused(t, os.DevNull, Options{}, os.DevNull+" is neither a file nor a folder: copy what it holds to a file first")
	refused(t, "/dev/zero", Options{Format: "npz"}, "/dev/zero is neither a file nor a folder")
	pipe := filepath.Join(dir, "pipe.npz")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, pipe, Options{}, "pipe.npz is neither a file nor a folder")
	l, err := net.Listen("unix", filepath.Join(dir, "s.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refused(t, filepath.Join(dir, "s.csv"), Options{}, "s.csv is neither a file nor a folder")
	// A pipe in place of one of a folder's files.
	tiny := tiny(t)
	for _, name := range []string{"ind.python2.graph", "ind.python2.test.index"} {
		path := filepath.Join(tiny, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, tiny, Options{}, name+" is neither a file nor a folder")
	}
	if os.Getuid() != 0 {
		secret := put(t, "secret.npz", nil)
		if err := os.Chmod(secret, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), secret, Options{}); err == nil || !strings.Contains(err.Error(), "permission") {
			t.Errorf("a file that may not be read: %v", err)
		}
	}
}
