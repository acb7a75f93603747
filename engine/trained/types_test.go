package trained

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/hgt"
)

// A model with weights by type is used on datasets whose relations lead between the same types only.
func TestTypesOfAnotherDataset(t *testing.T) {
	for _, c := range []struct{ model, starts, ends, want string }{
		{"1,0 0,1", "1,0", "0,1", ""},
		{"1,0 0,1", "", "", ""}, // not known, as of shards
		{"1,0 0,1", "1,0", "0,0", "end at other types"},
		{"1,0 0,1", "0,0", "0,1", "begin at other types"},
		{" ", "0,0", "0,0", "end at other types"}, // of triples
	} {
		s := nn.Defaults("hgt")
		starts, ends, _ := strings.Cut(c.model, " ")
		s.Tell(2, ends)
		s.TellStarts(starts)
		m, err := nn.New(s, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		w := &Weighed{model: m, about: dataset.About{Features: 3}}
		err = w.reads(&dataset.About{Features: 3, Relations: 2, Starts: c.starts, Ends: c.ends})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("relations from %q to %q: %v", c.starts, c.ends, err)
		}
	}
}

// Pairs with a given split are stored as triples with two relations are. Models of pairs are refused
// on triples, and models of triples on pairs.
func TestPairsAreNoTriples(t *testing.T) {
	drawn, divided, triples := *link.Default(), *link.Default(), *link.Default()
	divided.Given, triples.Given, triples.Relations = &[3]uint64{1, 1, 1}, &[3]uint64{1, 1, 1}, 2
	for _, c := range []struct {
		of        *link.Spec
		relations int
		pairs     bool
		want      string
	}{
		{&drawn, 0, false, ""}, {&divided, 2, true, ""}, {&triples, 2, false, ""},
		{&drawn, 2, true, "whose split is drawn"}, {&drawn, 2, false, "triples with 2 relations"}, {&divided, 0, false, "choose a dataset that has one, too"},
		{&divided, 2, false, "choose a dataset that has one, too"}, {&triples, 2, true, "the edges of the dataset have no relations"}, {&triples, 3, false, "those of the dataset have 3"},
	} {
		err := (&Weighed{links: c.of}).sameTriples(c.relations, c.pairs)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v on %d relations, pairs=%v: %v, and not %q", c.of, c.relations, c.pairs, err, c.want)
		}
	}
}
