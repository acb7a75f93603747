package triples_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/triples"
)

var small = readtest.Folder{
	"train.txt": "ada\tknows\tbob\nbob\tlikes\tada\n\nada\tlikes\teve\r\n",
	"valid.txt": "eve\tknows\tbob\n",
	"test.txt":  "bob\tknows\tzoe",
}

// Triples become edges whose numbers tell relation, direction and part, and each vertex has a column
// of its own.
func TestTriplesBecomeNumberedEdges(t *testing.T) {
	for name, files := range map[string]readtest.Folder{
		"text": small,
		"tsv":  {"train.tsv": small["train.txt"], "dev.tsv": small["valid.txt"], "test.tsv": small["test.txt"]},
	} {
		s, err := read.Open(t.Context(), files.Write(t), source.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h, err := readtest.Hold(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := graph.CheckSource(s); err != nil {
			t.Error(err)
		}
		var names []string
		ids := s.IDs().Strings
		for i := range h.Meta.Vertices {
			names = append(names, string(ids.Bytes[ids.Offsets[i]:ids.Offsets[i+1]]))
		}
		if want := []string{"ada", "bob", "eve", "zoe"}; !slices.Equal(names, want) {
			t.Errorf("%s: vertices %v, want %v", name, names, want)
		}
		// knows is relation 0 of 2, likes is 1.
		wantEdges := [][2]uint32{{0, 1}, {1, 0}, {0, 2}, {1, 0}, {0, 1}, {2, 0}, {2, 1}, {1, 3}}
		wantNumbers := []float32{0, 1, 1, 2, 3, 3, 4, 6}
		if !slices.Equal(h.Edges, wantEdges) || !slices.Equal(h.Weights, wantNumbers) {
			t.Errorf("%s: edges %v with %v, want %v with %v", name, h.Edges, h.Weights, wantEdges, wantNumbers)
		}
		of := h.Meta.Types
		if of == nil || of.Given == nil || *of.Given != [3]uint64{3, 1, 1} || of.Seen() != 4 || of.Numbers() != 8 || of.Relations[1].Name != "likes" || of.Relations[1].Edges != 2 {
			t.Errorf("%s: types %+v", name, of)
		}
		for v := range h.Meta.Vertices {
			if row := h.Features[v]; !slices.Equal(row, []readtest.Cell{{float32(v), 1}}) {
				t.Errorf("%s: vertex %d has the features %v", name, v, row)
			}
		}
		want := []string{"Each of the 4 entities has a feature of its own, as the triples have none.", "1 of the 4 entities are in no triple for training, so that nothing is learnt of them."}
		if !slices.Equal(h.Notes, want) {
			t.Errorf("%s: notes %q", name, h.Notes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A first line that names columns is no triple, and a note says so.
func TestNamesOfColumns(t *testing.T) {
	folder := small.With("train.txt", "Head\trelation\ttail\n"+small["train.txt"])
	s, err := read.Open(t.Context(), folder.Write(t), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Meta(); m.Vertices != 4 || len(m.Types.Relations) != 2 || *m.Types.Given != [3]uint64{3, 1, 1} {
		t.Errorf("%d entities, %d relations, %v triples", m.Vertices, len(m.Types.Relations), *m.Types.Given)
	}
	h, err := readtest.Hold(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if want := "The first line of train.txt names columns: it is no triple."; !slices.Contains(h.Notes, want) {
		t.Errorf("notes %q", h.Notes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The numbers of edges are taken apart into what they were made of.
func TestNumbersAreInvertible(t *testing.T) {
	seen := map[int]bool{}
	for relation := range 5 {
		for part := graph.Train; part <= graph.Test; part++ {
			for _, reversed := range []bool{false, true} {
				if reversed && part != graph.Train {
					continue
				}
				n := graph.TripleNumber(relation, 5, part, reversed)
				r, p, back := graph.TripleOf(n, 5)
				if r != relation || p != part || back != reversed || seen[n] || n >= 20 || (n < 10) != (part == graph.Train) {
					t.Errorf("%d of part %d, reversed %v: %d, which is %d, %d, %v", relation, part, reversed, n, r, p, back)
				}
				seen[n] = true
			}
		}
	}
}

// What can't be taken is refused in a sentence that says where it stands.
func TestRefusals(t *testing.T) {
	for want, files := range map[string]readtest.Folder{
		"train.txt, line 2: there is no head, relation and tail, but 2 columns: put tabs between them":          small.With("train.txt", "a\tr\tb\na b\tc\n"),
		"train.txt, line 1: column 2 is empty: give a head, a relation and a tail":                              small.With("train.txt", "a\t \tb\n"),
		"test.txt, line 1: there are more than the three columns head, relation and tail: leave the others out": small.With("test.txt", "a\tr\tb\t1\n"),
		"train.txt, line 1: column 3 is no text in UTF-8: save the file as such":                                small.With("train.txt", "a\tr\t\xff\n"),
		`train.txt, line 1: "r\x03s" is no name of a type or relation: give 1 to 256 bytes of text`:             small.With("train.txt", "a\tr\x03s\tb\n"),
		"has no triples for training: check that train.txt is not empty":                                        small.With("train.txt", "\n"),
		"valid.txt, which are the same part of the split: leave one of them":                                    small.With("val.txt", "a\tr\tb\n"),
		"as if columns were relation, head and tail: put them in the order head, relation, tail":                {"train.txt": "likes\ta\tb\nlikes\tb\tc\nlikes\tc\ta\n", "test.txt": "knows\ta\tc\n"},
		"does not hold train.txt and valid.txt or test.txt, as a folder of triples does: rename the files so":   {"train.txt": "a\tr\tb\n"},
		"the triples and names of": small.With("train.txt", longer()),
	} {
		o := source.Options{Format: triples.Format}
		if want == "the triples and names of" {
			o.Memory = 4096
		}
		readtest.Refused(t, read.Open, files.Write(t), o, want)
	}
}

func longer() (text string) {
	for i := range 300 {
		text += "a\tr\t" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "\n"
	}
	return text
}

// The graphs that results are made of are as their origin says.
func TestPublicGraphs(t *testing.T) {
	for name, want := range map[string]struct {
		entities  uint32
		relations int
		given     [3]uint64
	}{"umls": {135, 46, [3]uint64{5216, 652, 661}}, "kinship": {104, 25, [3]uint64{8548, 1069, 1069}}} {
		s, err := read.Open(t.Context(), filepath.Join("testdata", name), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m := s.Meta(); m.Vertices != want.entities || len(m.Types.Relations) != want.relations || *m.Types.Given != want.given {
			t.Errorf("%s: %d entities, %d relations, %v triples", name, m.Vertices, len(m.Types.Relations), *m.Types.Given)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
