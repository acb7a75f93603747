package jobs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Where one relation of a graph with types was learnt, vertices at which it begins have partners, and
// vertices at which it ends are some, unless an edge of it joins them. An edge of another relation does
// not count.
func TestPartnersOfALearntRelation(t *testing.T) {
	relations := []string{"wrote", enginetest.Back + "wrote", "edited", enginetest.Back + "edited"}
	src := enginetest.Typed(relations...)
	shards := enginetest.Cut(t, src, 3, "")
	r := recipe.DefaultRecipe("rgcn")
	r.Learn(task.Named("link"))
	if err := r.Set("link.relation", "wrote", strategies.All.Declared()); err != nil {
		t.Fatal(err)
	}
	if err := r.LearnRelation(src.Meta().Types); err != nil {
		t.Fatal(err)
	}
	r.Model.Tell(len(relations), src.Meta().Types.Ends())
	r.Epochs, r.Model.Layers, r.Links.Width, r.Batch, r.Fanouts = 1, 2, 6, 200, nil
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	p := Prediction{Model: filepath.Join(dir, train.CheckpointFile), Shards: shards, Folder: dir, Format: ".csv"}
	o, err := sorted(shards, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	known, begin, end := map[[2]string]bool{}, map[string]bool{}, map[string]bool{}
	edited := map[[2]string]bool{}
	for v := range uint32(o.total) {
		s, row := o.of(v)
		for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
			ends := [2]string{string(o.id(nil, uint32(s.Indices[e]))), string(o.id(nil, v))}
			switch int(s.Related.Of[e]) {
			case 0:
				known[ends], begin[ends[0]], end[ends[1]] = true, true, true
			case 2:
				edited[ends] = true
			}
		}
	}
	var list strings.Builder
	list.WriteString("source,target\n")
	for a := range begin {
		for b := range end {
			fmt.Fprintf(&list, "%s,%s\n", a, b)
		}
	}
	left := map[string][]scored{}
	for _, r := range pairsOf(t, p, Pairing{Pairs: written(t, "all.csv", list.String())}) {
		if !known[[2]string{r.source, r.target}] {
			left[r.source] = append(left[r.source], r)
		}
	}
	const top = 560 // nearly all papers, so that some are partners that an edge of another relation joins
	for _, memory := range []uint64{0, 128 << 20} {
		p.Memory = memory
		best, others, sources := pairsOf(t, p, Pairing{Top: top}), 0, 0
		for len(best) > 0 {
			source := best[0].source
			of := left[source]
			slices.SortStableFunc(of, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
			n := min(top, len(of))
			if n == 0 || len(best) < n {
				t.Fatalf("%s has partners, and no edge of the relation begins at it", source)
			}
			for i, r := range best[:n] {
				if r.source != source || !end[r.target] || known[[2]string{source, r.target}] || r.score != of[i].score {
					t.Fatalf("partner %d of %s: %v, want the score %g", i, source, r, of[i].score)
				}
				if edited[[2]string{source, r.target}] {
					others++
				}
			}
			best = best[n:]
			sources++
		}
		if sources != len(begin) || others == 0 {
			t.Errorf("%d of %d vertices have partners, %d of which an edge of another relation joins", sources, len(begin), others)
		}
	}
	some := pairsOf(t, p, Pairing{Top: 2, Vertices: written(t, "some.csv", "id\n"+first(begin)+"\n")})
	if len(some) != 2 || some[0].source != first(begin) {
		t.Errorf("asked for one vertex: %v", some)
	}
	// Shards of another graph have no such relation.
	p.Shards, p.Memory = enginetest.Cora(t), 0
	if err := PredictPairs(t.Context(), p, Pairing{Top: 2}, new(strings.Builder)); err == nil {
		t.Error("partners were found on a graph without relations")
	}
}

// first returns the first of some names.
func first(of map[string]bool) string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	return slices.Min(names)
}
