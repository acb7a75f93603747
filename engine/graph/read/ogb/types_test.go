package ogb

import (
	"archive/zip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// mag is a small graph laid out as ogbn-mag is: two authors, three papers with features, and a field.
func mag() readtest.Folder {
	return readtest.Folder{
		"raw/num-node-dict.csv.gz":                                     "paper,author,field\n3,2,1\n",
		"raw/nodetype-has-feat.csv.gz":                                 "paper,author,field\nTrue,False,False\n",
		"raw/triplet-type-list.csv.gz":                                 "paper,cites,paper\nauthor,writes,paper\npaper,has_topic,field\n",
		"raw/node-feat/paper/node-feat.csv.gz":                         "1,2\n3,4\n5,6\n",
		"raw/node-feat/paper/node_year.csv.gz":                         "2001\n2002\n2003\n",
		"raw/node-label/paper/node-label.csv.gz":                       "0\n2\n1\n",
		"raw/relations/author___writes___paper/edge.csv.gz":            "0,0\n1,0\n1,2\n",
		"raw/relations/author___writes___paper/edge_reltype.csv.gz":    "1\n1\n1\n",
		"raw/relations/author___writes___paper/num-edge-list.csv.gz":   "3\n",
		"raw/relations/paper___cites___paper/edge.csv.gz":              "2,0\n2,1\n",
		"raw/relations/paper___cites___paper/num-edge-list.csv.gz":     "2\n",
		"raw/relations/paper___has_topic___field/edge.csv.gz":          "1,0\n",
		"raw/relations/paper___has_topic___field/num-edge-list.csv.gz": "1\n",
		"split/time/nodetype-has-split.csv.gz":                         "paper,author,field\nTrue,False,False\n",
		"split/time/paper/train.csv.gz":                                "0\n",
		"split/time/paper/valid.csv.gz":                                "1\n",
		"split/time/paper/test.csv.gz":                                 "2\n",
	}
}

func TestOGBWithTypes(t *testing.T) {
	h := readtest.MustHold(t, Open, mag().Write(t), source.Options{})
	m := h.Meta
	var names []string
	for _, of := range m.Types.Vertices {
		names = append(names, of.Name)
	}
	for _, r := range m.Types.Relations {
		names = append(names, r.String())
	}
	if want := []string{"author", "field", "paper", "author-writes-paper", "paper-cites-paper", "paper-has_topic-field"}; !slices.Equal(names, want) {
		t.Errorf("types and relations %v", names)
	}
	if m.Format != "ogb" || m.Vertices != 6 || m.Edges != 6 || m.Features != 4 || m.Classes != 3 || !m.Types.Vertices[0].Bare || m.Types.Vertices[2].Bare {
		t.Errorf("%+v", m)
	}
	// Authors are 0 and 1, the field is 2, papers are from 3 on.
	if want := [][2]uint32{{0, 3}, {1, 3}, {1, 5}, {5, 3}, {5, 4}, {4, 2}}; !slices.Equal(h.Edges, want) {
		t.Errorf("edges %v", h.Edges)
	}
	if want := []int32{-1, -1, -1, 0, 2, 1}; !slices.Equal(h.Labels, want) {
		t.Errorf("labels %v", h.Labels)
	}
	if len(h.Splits) != 1 || !slices.Equal(h.Splits[0], []uint8{0, 0, 0, 1, 2, 3}) {
		t.Errorf("splits %v", h.Splits)
	}
	if want := []readtest.Cell{{2, 3}, {3, 4}}; !slices.Equal(h.Features[4], want) || !slices.Equal(h.Features[1], []readtest.Cell{{0, 1}}) {
		t.Errorf("features %v", h.Features)
	}
	if len(h.Notes) != 2 || h.Notes[0] != "Not used of raw/: node-feat/paper/node_year.csv.gz." || !strings.Contains(h.Notes[1], "{dataset.undirected}") {
		t.Errorf("notes %q", h.Notes)
	}
}

func TestOGBWithTypesInAnArchive(t *testing.T) {
	here := readtest.MustHold(t, Open, mag().Write(t), source.Options{})
	there := readtest.MustHold(t, Open, readtest.Put(t, "mag.zip", zipped(t, mag(), "mag", zip.Deflate)), source.Options{})
	here.Notes, there.Notes = nil, nil
	if !reflect.DeepEqual(here, there) {
		t.Errorf("in an archive it is %+v and not %+v", there, here)
	}
}

// TestOGBWithTypesBothWays mirrors edges: relations between types get one back.
func TestOGBWithTypesBothWays(t *testing.T) {
	s, err := Open(t.Context(), mag().Write(t), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.(interface{ Mirror() error }).Mirror(); err != nil {
		t.Fatal(err)
	}
	if m := s.Meta(); m.Edges != 12 || len(m.Types.Relations) != 5 || m.Types.Relations[3].String() != "paper-rev-writes-author" {
		t.Errorf("%+v", m.Types)
	}
}

func TestOGBWithTypesRefused(t *testing.T) {
	const edges = "raw/relations/author___writes___paper/edge.csv.gz"
	for name, c := range map[string]struct {
		folder readtest.Folder
		want   string
	}{
		"one line":         {mag().With("raw/num-node-dict.csv.gz", "paper,author,field\n"), "is not a line of up to 256 types and one of as many numbers"},
		"several graphs":   {mag().With("raw/num-node-dict.csv.gz", "paper,author,field\n3,2,1\n3,2,1\n"), "as if there were several graphs"},
		"no number":        {mag().With("raw/num-node-dict.csv.gz", "paper,author,field\n3,two,1\n"), `"two" is no number of vertices of the type "author"`},
		"a folder as name": {mag().With("raw/num-node-dict.csv.gz", "paper,author,../field\n3,2,1\n"), `there can't be a folder called "../field"`},
		"a path as name":   {mag().With("raw/num-node-dict.csv.gz", "paper,author,fi/eld\n3,2,1\n"), `there can't be a folder called "fi/eld"`},
		"a type twice":     {mag().With("raw/num-node-dict.csv.gz", "paper,author,paper\n3,2,1\n"), "names the type paper twice"},
		"too many":         {mag().With("raw/num-node-dict.csv.gz", "paper,author,field\n3,2,2000000000\n"), "it says that there are 2000000005 vertices, and raw/ has"},
		"no list":          {mag().With("raw/triplet-type-list.csv.gz", ""), "triplet-type-list.csv.gz is empty"},
		"half a relation":  {mag().With("raw/triplet-type-list.csv.gz", "paper,cites\n"), "line 1: \"paper,cites\" is not a source, a relation and a target"},
		"an unknown type":  {mag().With("raw/triplet-type-list.csv.gz", "paper,cites,book\n"), "a relation from paper to book, and num-node-dict.csv.gz has not both types"},
		"a relation twice": {mag().With("raw/triplet-type-list.csv.gz", "paper,cites,paper\npaper,cites,paper\n"), "has the relation paper,cites,paper twice"},
		"a far source":     {mag().With(edges, "0,0\n2,0\n1,2\n"), "relations/author___writes___paper/edge.csv.gz, line 2: there is not a vertex 2, as there are 2"},
		"a far target":     {mag().With(edges, "0,0\n1,3\n1,2\n"), "relations/author___writes___paper/edge.csv.gz, line 2: there is not a vertex 3, as there are 3"},
		"edges too few":    {mag().With(edges, "0,0\n"), "has 1 edges and relations/author___writes___paper/num-edge-list.csv.gz says 3"},
		"no edges":         {mag().Without(edges), "look at raw/relations/author___writes___paper/edge.csv.gz"},
		"features too few": {mag().With("raw/node-feat/paper/node-feat.csv.gz", "1,2\n"), "node-feat/paper/node-feat.csv.gz has 1 rows and there are 3 vertices"},
		"labels too few":   {mag().With("raw/node-label/paper/node-label.csv.gz", "1\n"), "node-label/paper/node-label.csv.gz has 1 rows and there are 3 vertices"},
		"no split":         {mag().Without("split/time/paper/valid.csv.gz"), "split/time/paper/valid.csv.gz is missing"},
		"a far split":      {mag().With("split/time/paper/train.csv.gz", "3\n"), `there is not a vertex "3", as there are 3`},
	} {
		t.Run(name, func(t *testing.T) { readtest.Refused(t, Open, c.folder.Write(t), source.Options{}, c.want) })
	}
}

// FuzzOGBTypes puts anything in place of one of the tables of a graph with types.
func FuzzOGBTypes(f *testing.F) {
	raw := mag()
	var names []string
	for name := range raw {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		f.Add(byte(i), []byte(raw[name]))
	}
	f.Add(byte(0), []byte("0,0\n1,0\n1,2"))
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		dir := raw.With(names[int(which)%len(names)], string(b)).Write(t)
		defer func() {
			if err := os.RemoveAll(filepath.Join(dir, "raw")); err != nil {
				t.Error(err)
			}
		}()
		readtest.Within(t, 128<<20, func() {
			s, err := Open(t.Context(), dir, source.Options{})
			if err != nil {
				return
			}
			defer s.Close()
			readtest.Consistent(t, s)
		})
	})
}
