package read

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// numbered are edges with the numbers that say their parts.
func numbered(h *readtest.Held) (all [][3]int) {
	for i, e := range h.Edges {
		all = append(all, [3]int{int(e[0]), int(e[1]), int(h.Weights[i])})
	}
	return all
}

// Tables beside those of a graph split its edges, whatever the ids are.
func TestTablesThatSplitEdges(t *testing.T) {
	integers := readtest.Folder{
		"edges.csv":           "src,dst,weight\n10,20,1.5\n20,30,2\n40,30,1\n",
		"nodes.csv":           "id,a\n10,1\n20,2\n30,3\n40,4\n50,5\n",
		"edges_valid.tsv":     "source\ttarget\n10\t30\n",
		"edges_test.csv.gz":   "20,40\n40,50\n30,40\n",
		"negatives_val.csv":   "10,50\n",
		"Negatives_test.csv":  "50,20\n10,40\n",
		"negatives_train.csv": "1,2\n",
	}
	h := readtest.MustHold(t, Open, integers.Write(t), source.Options{})
	want := [][3]int{{0, 1, 0}, {1, 2, 0}, {0, 2, 4}, {0, 4, 5}, {1, 3, 6}, {2, 3, 6}, {3, 4, 6}, {0, 3, 7}, {4, 1, 7}}
	if got := numbered(h); !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
	if m := h.Meta; m.Format != "csv" || m.Vertices != 5 || m.Features != 1 || m.Types == nil || !m.Types.Pairs || *m.Types.Given != [3]uint64{2, 1, 3} {
		t.Errorf("%+v of %+v", m.Types, m)
	}
	notes := strings.Join(h.Notes, "\n")
	if !strings.Contains(notes, "negatives_valid and negatives_test: negatives_train.csv.") || strings.Contains(notes, "edges_valid.tsv") {
		t.Errorf("notes %s", notes)
	}
	text := readtest.Folder{"edges.csv": "ann,bob\nbob,cid\n", "edges_test.csv": "cid,ann\n"}
	if got, want := numbered(readtest.MustHold(t, Open, text.Write(t), source.Options{})), [][3]int{{0, 1, 0}, {1, 2, 0}, {2, 0, 6}}; !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
	for want, f := range map[string]readtest.Folder{
		"edges_test.csv, edge 2: the id 9 is not among the nodes: add it to their table": {"edges.csv": "1,2\n2,3\n", "edges_test.csv": "1,3\n3,9\n"},
		"edges_test.csv, edge 1: the id \"x\" is not among the nodes":                    {"edges.csv": "1,2\n2,3\n", "edges_test.csv": "x,3\n"},
		"edges_test.csv and edges_test.tsv are both there":                               {"edges.csv": "1,2\n2,3\n", "edges_test.csv": "1,3\n", "edges_test.tsv": "1\t3\n"},
		"edges_test.csv holds edges of a given split, and the graph has types":           {"edges.csv": "src,dst,relation\n1,2,a\n2,3,b\n", "edges_test.csv": "1,3\n"},
	} {
		readtest.Refused(t, Open, f.Write(t), source.Options{}, want)
	}
}

// Arrays of an archive do the same.
func TestArraysThatSplitEdges(t *testing.T) {
	for _, z := range []readtest.Arrays{readtest.Lists(), readtest.Matrices()} {
		n := [2]int{5, 3}[min(1, len(z)/7)]
		val, test, no := readtest.Of("(2, 1)", []int64{1, int64(n - 1)}), readtest.Of("(2, 2)", []int32{1, 1, 1, 0}), readtest.Of("(2, 1)", []int64{1, 2})
		h := readtest.MustHold(t, Open, z.With("edges_valid", &val).With("edges_test", &test).With("negatives_valid", &no).With("negatives_test", &no).File(t, 0), source.Options{})
		got := numbered(h)
		if last := got[len(got)-4:]; !slices.Equal(last, [][3]int{{1, n - 1, 4}, {1, 2, 5}, {1, 0, 6}, {1, 2, 7}}) {
			t.Errorf("the last edges are %v", last)
		}
		for _, e := range got[:len(got)-4] {
			if e[2] != 0 || e[0]+e[1] == 1 {
				t.Errorf("an edge for training is %v", e)
			}
		}
		if h.Meta.Types == nil || h.Meta.Types.Given[0] != uint64(len(got)-4) || strings.Contains(strings.Join(h.Notes, "\n"), "not used") {
			t.Errorf("%+v, notes %q", h.Meta.Types, h.Notes)
		}
	}
	for want, of := range map[string]readtest.NPY{
		"edges_test: it has the shape [1, 2]: save two rows, each edge's source and each edge's target, such as its transpose edges_test.T": readtest.Of("(1, 2)", []int64{0, 3}),
		"there is not a vertex 5, as there are 5 vertices": readtest.Of("(2, 1)", []int64{0, 5}),
		"edges_test: it has the type":                      readtest.Of("(2, 1)", []float32{0, 3}),
	} {
		readtest.Refused(t, Open, readtest.Lists().With("edges_test", &of).File(t, 0), source.Options{}, want)
	}
}

// FuzzBeside reads anything as the tables that split the edges of a graph.
func FuzzBeside(f *testing.F) {
	f.Add([]byte("1,3\n"), []byte("src,dst\n2,2\n2,1\n"))
	f.Add([]byte("a,\"b\"\n\"\n"), []byte("3 1\n"))
	f.Add([]byte("9223372036854775807,-1\n"), []byte{0xff, 0})
	f.Fuzz(func(t *testing.T, edges, negatives []byte) {
		if len(edges)+len(negatives) > 1<<16 || bytes.IndexByte(edges, 0x1f) == 0 || bytes.IndexByte(negatives, 0x1f) == 0 {
			return // what is packed is larger than it looks
		}
		dir := t.TempDir()
		for name, b := range map[string][]byte{"edges.csv": []byte("1,2\n2,3\n3,a\n"), "edges_test.csv": edges, "negatives_test.csv": negatives} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		readtest.Within(t, 256<<20, func() {
			s, err := Open(context.Background(), dir, source.Options{Memory: 16 << 20})
			if err != nil {
				return
			}
			defer s.Close()
			readtest.Consistent(t, s)
			if given := s.Meta().Types.Given; given[graph.Train-1] == 0 || given[graph.Test-1] == 0 {
				t.Errorf("parts of %v edges", given)
			}
		})
	})
}
