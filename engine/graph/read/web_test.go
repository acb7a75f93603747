package read

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// serve serves a folder's files, and cuts each third connection after half of an answer.
func serve(t *testing.T, dir string) string {
	t.Helper()
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(filepath.Join(dir, filepath.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"1"`)
		if requests.Add(1)%3 == 0 {
			w = half{w}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

type half struct{ http.ResponseWriter }

func (h half) Write(b []byte) (int, error) {
	_, _ = h.ResponseWriter.Write(b[:len(b)/2])
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// TestFormatsOverHTTP reads each kind of single file as if it were here.
func TestFormatsOverHTTP(t *testing.T) {
	dir := t.TempDir()
	var edges strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&edges, "%d,%d\n", i, (i+1)%100_000)
	}
	files := map[string]string{"g.csv": edges.String()}
	for name, path := range map[string]string{"g.parquet": "testdata/columns/pyarrow-ints.parquet", "g.feather": "testdata/columns/pyarrow-ints.feather", "g.npz": "testdata/amazon_photo.npz"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := serve(t, dir)
	for name := range files {
		here := readtest.MustHold(t, Open, filepath.Join(dir, name), source.Options{})
		there := readtest.MustHold(t, Open, host+"/"+name+"?signed=1", source.Options{})
		if !slices.Equal(here.Edges, there.Edges) || !slices.Equal(here.Labels, there.Labels) || !slices.Equal(here.Notes, there.Notes) {
			t.Errorf("%s is another graph there: %d edges of %d, %q, %q", name, len(there.Edges), len(here.Edges), there.Notes, here.Notes)
		}
	}
	readtest.Refused(t, Open, host+"/none.csv?signed=1", source.Options{}, "there is no file at "+host+"/none.csv (404): check the address")
	readtest.Refused(t, Open, host+"/graph?signed=1", source.Options{}, "graph does not say by its name what it is")
	readtest.Refused(t, Open, host+"/raw", source.Options{Format: "ogb"}, "there is no file at "+host+"/raw (404): check the address")
	src, err := OpenParts(t.Context(), []Part{{Label: "a?secret", Path: filepath.Join(dir, "g.csv")}, {Label: host + "/g.csv?secret=1", Path: host + "/g.csv?secret=1"}}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	n := 0
	if err := src.Edges(t.Context(), func(b graph.EdgeBatch) error { n += len(b.Src); return nil }); err != nil || n != 200_000 {
		t.Errorf("%d edges: %v", n, err)
	}
	for _, note := range src.Notes() {
		if strings.Contains(note, "secret=1") {
			t.Error(note)
		}
	}
}

// Planetoid's files are found behind http by one of their names or how all begin, and in a store
// by their folder, too.
func TestPlanetoidOfServers(t *testing.T) {
	const dir = "testdata/planetoid/python3"
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]string{"p/README.md": "about"}
	for _, e := range all {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		objects["p/"+e.Name()] = string(b)
	}
	store(t, objects)
	host := serve(t, dir)
	here := readtest.MustHold(t, Open, dir, source.Options{})
	for address, rest := range map[string]bool{
		host + "/NAME.x?token=1": false, host + "/NAME": false, "s3://data/p/NAME.graph": false, "s3://data/p": true, "s3://data/p/": true,
	} {
		there := readtest.MustHold(t, Open, strings.Replace(address, "NAME", "ind.python3", 1), source.Options{})
		if !slices.Equal(here.Edges, there.Edges) || !slices.Equal(here.Labels, there.Labels) || !reflect.DeepEqual(here.Meta, there.Meta) {
			t.Errorf("%s is another graph: %+v and not %+v", address, there.Meta, here.Meta)
		}
		if named := slices.Contains(there.Notes, "Not read of p: README.md."); named != rest {
			t.Errorf("%s: %q", address, there.Notes)
		}
	}
	readtest.Refused(t, Open, host+"/ind.none.x", source.Options{}, "there is no file at "+host+"/ind.none.test.index (404): check the address")
	readtest.Refused(t, Open, host+"/p/?token=1", source.Options{Format: "planetoid"}, host+"/p/ is not one of Planetoid's files, and files behind http can't be listed: give the address of one called ind.NAME.x")
	objects["p/ind.other.x"] = "x"
	readtest.Refused(t, Open, "s3://data/p", source.Options{}, "s3://data/p holds the graphs")
}

// store serves objects as the bucket data of a store.
func store(t *testing.T, objects map[string]string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Query().Has("list-type"):
			fmt.Fprint(w, "<ListBucketResult>")
			folders := map[string]bool{}
			for name := range objects {
				prefix := r.URL.Query().Get("prefix")
				if folder, _, deeper := strings.Cut(strings.TrimPrefix(name, prefix), "/"); deeper && strings.HasPrefix(name, prefix) && r.URL.Query().Get("delimiter") == "/" {
					if folders[folder] {
						continue
					}
					folders[folder] = true
					fmt.Fprintf(w, "<CommonPrefixes><Prefix>%s%s/</Prefix></CommonPrefixes>", prefix, folder)
				} else if strings.HasPrefix(name, prefix) {
					fmt.Fprintf(w, "<Contents><Key>%s</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>", name)
				}
			}
			fmt.Fprint(w, "</ListBucketResult>")
		case objects[strings.TrimPrefix(r.URL.Path, "/data/")] == "":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Last-Modified", time.Unix(1, 0).UTC().Format(http.TimeFormat))
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(objects[strings.TrimPrefix(r.URL.Path, "/data/")]))
		}
	}))
	t.Cleanup(s.Close)
	for name, value := range map[string]string{"HOME": t.TempDir(), "AWS_ENDPOINT_URL_S3": s.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"} {
		t.Setenv(name, value)
	}
}

// TestOGBOfServers reads a folder of a store, and an archive over a connection that is cut.
func TestOGBOfServers(t *testing.T) {
	dir := readtest.OGB().Write(t)
	objects := map[string]string{"o/README.md": "about"}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name := range readtest.OGB() {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		objects["o/"+name] = string(b)
		w, err := z.Create("arxiv/" + name)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	objects["arxiv.zip"] = packed.String()
	store(t, objects)
	served := t.TempDir()
	if err := os.WriteFile(filepath.Join(served, "arxiv.zip"), packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	host := serve(t, served)
	here := readtest.MustHold(t, Open, dir, source.Options{})
	for address, rest := range map[string]bool{"s3://data/o": true, "s3://data/o/": true, "s3://data/arxiv.zip": false, host + "/arxiv.zip?token=1": false} {
		there := readtest.MustHold(t, Open, address, source.Options{})
		if !slices.Equal(here.Edges, there.Edges) || !slices.Equal(here.Labels, there.Labels) || !reflect.DeepEqual(here.Meta, there.Meta) || !reflect.DeepEqual(here.Splits, there.Splits) || !reflect.DeepEqual(here.Features, there.Features) {
			t.Errorf("%s is another graph: %+v and not %+v", address, there.Meta, here.Meta)
		}
		if named := slices.Contains(there.Notes, "Not read of o: README.md."); named != rest {
			t.Errorf("%s: %q", address, there.Notes)
		}
	}
	readtest.Refused(t, Open, host+"/arxiv/", source.Options{Format: "ogb"}, host+"/arxiv/ is a folder, and files behind http can't be listed")
	readtest.Refused(t, Open, host+"/none.zip", source.Options{}, "there is no file at "+host+"/none.zip")
}

// TestAFolderInAStore reads tables of edges and nodes from a bucket.
func TestAFolderInAStore(t *testing.T) {
	objects := map[string]string{"g/edges.csv": "src,dst\na,b\nb,c\n", "g/nodes.csv": "id,label,age\na,x,1\nb,y,2\nc,x,3\n", "g/README.md": "about"}
	store(t, objects)
	for _, address := range []string{"s3://data/g", "s3://data/g/"} {
		h := readtest.MustHold(t, Open, address, source.Options{})
		if got := fmt.Sprint(h.Edges, h.Labels, h.Meta.ClassNames, h.Meta.Features); got != "[[0 1] [1 2]] [0 1 0] [x y] 1" {
			t.Error(got)
		}
		if !slices.ContainsFunc(h.Notes, func(n string) bool { return strings.HasSuffix(n, ": README.md.") }) {
			t.Errorf("%q", h.Notes)
		}
	}
	readtest.Refused(t, Open, "s3://data/none", source.Options{}, "there is neither a file nor a folder at s3://data/none: check the address")
	readtest.Refused(t, Open, "s3://data/g/x/", source.Options{}, "there is neither a file nor a folder at s3://data/g/x/: check the address")
}
