package trained

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
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
