package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// linked returns a model of links on shards, in a folder.
func linked(t testing.TB, shards []*graph.Shard, decoder string) Prediction {
	t.Helper()
	r := recipe.DefaultRecipe("gcn")
	r.Learn(task.Named("link"))
	r.Epochs, r.Model.Hidden, r.Links.Width, r.Batch, r.Links.Decoder = 2, 8, 6, 20, decoder
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return Prediction{Model: filepath.Join(dir, train.CheckpointFile), Shards: shards, Folder: dir, Format: ".csv"}
}

// namedShards cuts a graph whose vertices have names.
func namedShards(t testing.TB) []*graph.Shard {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 1))
	folder, edges, features := t.TempDir(), "src,dst\n", "id,a,b,c\n"
	name := func(i int) string { return fmt.Sprintf("%c vertex %d", 'a'+i%7, i) }
	for i := range 50 {
		features += fmt.Sprintf("%s,%.3f,%.3f,%.3f\n", name(i), r.NormFloat64(), r.NormFloat64(), r.NormFloat64())
		for range 3 {
			edges += name(i) + "," + name(r.IntN(50)) + "\n"
		}
	}
	for file, text := range map[string]string{"edges.csv": edges, "features.csv": features} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return enginetest.FromFile(t, folder, 3)
}

// scored is a row of what is predicted of pairs.
type scored struct {
	source, target string
	score          float32
}

// pairsOf returns what is predicted of pairs.
func pairsOf(t *testing.T, p Prediction, of Pairing) (rows []scored) {
	t.Helper()
	var out bytes.Buffer
	if err := PredictPairs(t.Context(), p, of, &out); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&out).ReadAll()
	if err != nil || fmt.Sprint(all[0]) != "[source target score]" {
		t.Fatalf("%q, %v", all, err)
	}
	for _, r := range all[1:] {
		score, err := strconv.ParseFloat(r[2], 32)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, scored{r[0], r[1], float32(score)})
	}
	return rows
}

// written writes a file.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Partners are those that all pairs show when each is scored by itself, and scores are those of the
// trained decoder. Neither memory nor how much is looked up at once changes a bit.
func TestPartnersAreTheBestOfAllPairs(t *testing.T) {
	defer func(vertices, ids int) { runVertices, lookedUp = vertices, ids }(runVertices, lookedUp)
	w := newWorld(t)
	numbered := model(t, w).Shards
	for _, c := range []struct {
		decoder string
		shards  []*graph.Shard
	}{{"dot", numbered}, {"dot", namedShards(t)}, {"distmult", numbered}, {"mlp", namedShards(t)}} {
		shards, p := c.shards, linked(t, c.shards, c.decoder)
		var names []string // in their order
		near := map[[2]string]bool{}
		o, err := sorted(shards, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for v := range uint32(o.total) {
			names = append(names, string(o.id(nil, v)))
			s, row := o.of(v)
			for _, u := range s.Indices[s.Indptr[row]:s.Indptr[row+1]] {
				a, b := string(o.id(nil, uint32(u))), string(o.id(nil, v))
				near[[2]string{a, b}], near[[2]string{b, a}] = true, true
			}
		}
		before := func(a, b string) int {
			if x, err := strconv.Atoi(a); err == nil {
				y, _ := strconv.Atoi(b)
				return cmp.Compare(x, y)
			}
			return strings.Compare(a, b)
		}
		slices.SortFunc(names, before)
		list := "source,target\n"
		for _, a := range names {
			for _, b := range names {
				list += a + "," + b + "\n"
			}
		}
		all := Pairing{Pairs: written(t, "all.csv", list)}
		every := pairsOf(t, p, all)
		checkScores(t, p, c.decoder, every, len(names), 0, 0)
		for _, c := range []struct{ vertices, ids int }{{7, 9}, {1 << 18, 1 << 17}} {
			runVertices, lookedUp = c.vertices, c.ids
			if again := pairsOf(t, p, all); !slices.Equal(again, every) {
				t.Error("pairs have other scores where they are looked up in parts")
			}
			for _, memory := range []uint64{0, budget.Program + 48<<20} {
				p.Memory = memory
				for _, neighbours := range []bool{false, true} {
					for _, top := range []int{1, 5, 1000} {
						some := []string{names[9], names[3], names[30], names[3]}
						for file, sources := range map[string][]string{"": names, written(t, "some.csv", "id\n"+strings.Join(some, "\n")): some} {
							got := pairsOf(t, p, Pairing{Top: top, Vertices: file, Neighbours: neighbours})
							var want []scored
							for _, source := range sources {
								of := slices.DeleteFunc(slices.Clone(every), func(r scored) bool {
									return r.source != source || r.target == source || !neighbours && near[[2]string{source, r.target}]
								})
								slices.SortStableFunc(of, func(a, b scored) int { return cmp.Compare(b.score, a.score) }) // names ascend
								want = append(want, of[:min(top, len(of))]...)
							}
							if !slices.Equal(got, want) {
								t.Fatalf("%d partners, neighbours %v, memory %d, %d vertices: %v, want %v", top, neighbours, memory, len(sources), got, want)
							}
						}
					}
				}
			}
			p.Memory = 0
		}
		if left, err := os.ReadDir(p.Folder); err != nil || len(left) != 1 {
			t.Errorf("left are %v, %v", left, err)
		}
		// A model that was exported scores as its checkpoint does.
		exported, err := os.Create(filepath.Join(t.TempDir(), "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(trained.Export(exported, p.Model, trained.BestModel), exported.Close()); err != nil {
			t.Fatal(err)
		}
		if p.Model = exported.Name(); !slices.Equal(pairsOf(t, p, all), every) {
			t.Error("the exported model has other scores")
		}
	}
}

// checkScores compares the scores of all pairs with those of the decoder of training, in float64.
func checkScores(t *testing.T, p Prediction, decoder string, every []scored, vertices, relation, relations int) {
	t.Helper()
	w, err := trained.ReadWeighed(p.Model, trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	size, err := link.Size(decoder, 6, relations)
	if err != nil {
		t.Fatal(err)
	}
	var weights []float64 // the model's last
	for _, v := range w.Weights[len(w.Weights)-size:] {
		weights = append(weights, float64(v))
	}
	exact := link.NewDecoder(decoder, 6)
	p.Format = ".npy"
	var out bytes.Buffer
	if err := Predict(t.Context(), p, &out); err != nil {
		t.Fatal(err)
	}
	columns := 6
	body := out.Bytes()[out.Len()-4*columns*vertices:]
	at := func(row int) (x []float64) {
		for column := range columns {
			x = append(x, float64(math.Float32frombits(binary.LittleEndian.Uint32(body[4*(row*columns+column):]))))
		}
		return x
	}
	spread := 0.0
	for i, r := range every {
		sum := exact.Score(weights, at(i/vertices), at(i%vertices), relation)
		if spread = max(spread, math.Abs(sum)); math.Abs(sum-float64(r.score)) > 1e-5*max(1, math.Abs(sum)) {
			t.Fatalf("the score of %s and %s is %g, want %g", r.source, r.target, r.score, sum)
		}
	}
	if spread == 0 {
		t.Error("all scores are 0, so this proves nothing")
	}
}

// ofTriples trains a model of triples.
func ofTriples(t testing.TB) Prediction {
	t.Helper()
	shards := enginetest.Triples(t, 3)
	r := recipe.DefaultRecipe("mlp")
	r.Learn(task.Named("link"))
	if err := r.LearnTriples(dataset.About{Triples: enginetest.TripleRelations, Given: enginetest.GivenTriples()}, false); err != nil {
		t.Fatal(err)
	}
	r.Epochs, r.Model.Layers, r.Links.Width, r.Batch = 1, 1, 6, 200
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return Prediction{Model: filepath.Join(dir, train.CheckpointFile), Shards: shards, Folder: dir, Format: ".csv"}
}

// Pairs of a relation are scored with its weights, and partners are no tails of known triples of that
// relation, of any part of the split.
func TestPartnersByRelation(t *testing.T) {
	p := ofTriples(t)
	o, err := sorted(p.Shards, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	list, names := "source,target\n", []string(nil)
	for v := range uint32(o.total) {
		names = append(names, string(o.id(nil, v)))
	}
	slices.Sort(names)
	for _, a := range names {
		for _, b := range names {
			list += a + "," + b + "\n"
		}
	}
	for relation := range enginetest.TripleRelations {
		known := map[[2]string]bool{}
		for v := range uint32(o.total) {
			s, row := o.of(v)
			for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
				if r, _, reversed := graph.TripleOf(int(s.Related.Of[e]), enginetest.TripleRelations); r == relation && !reversed {
					known[[2]string{string(o.id(nil, uint32(s.Indices[e]))), string(o.id(nil, v))}] = true
				}
			}
		}
		every := pairsOf(t, p, Pairing{Pairs: written(t, "all.csv", list), Relation: &relation})
		checkScores(t, p, link.OfTriples, every, len(names), relation, enginetest.TripleRelations)
		left := map[string][]scored{}
		for _, r := range every {
			if r.source != r.target && !known[[2]string{r.source, r.target}] {
				left[r.source] = append(left[r.source], r)
			}
		}
		best, excluded := pairsOf(t, p, Pairing{Top: 3, Relation: &relation}), 0
		for len(best) > 0 {
			of := left[best[0].source]
			slices.SortStableFunc(of, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
			n := min(3, len(of))
			for i, r := range best[:n] {
				if r.source != of[i].source || r.score != of[i].score || known[[2]string{r.source, r.target}] {
					t.Fatalf("partner %d of %s: %v, want %v", i, r.source, r, of[i])
				}
			}
			excluded += len(names) - 1 - len(of)
			best = best[n:]
		}
		if excluded == 0 || len(known) == 0 {
			t.Errorf("relation %d: no known triple is left out, so this proves nothing", relation)
		}
	}
}

// What can't be scored is refused in a sentence, and leaves nothing.
func TestPairsThatCannotBeScored(t *testing.T) {
	w := newWorld(t)
	classes := model(t, w)
	p := linked(t, classes.Shards, "dot")
	classes.Format = ".csv"
	triples := ofTriples(t)
	tight := p
	tight.Memory = budget.Program + 1<<20
	npy := p
	npy.Format = ".npy"
	for want, c := range map[string]struct {
		p  Prediction
		of Pairing
	}{
		"pairs.csv: pair 2 has the id \"60\", which no vertex of the dataset has: give the ids of its source": {p, Pairing{Pairs: written(t, "pairs.csv", "1,2\n60,3\n")}},
		"pairs.csv: pair 1 has the id \"007\", which no vertex":                                               {p, Pairing{Pairs: written(t, "pairs.csv", "007,2\n")}},
		"some.csv: vertex 1 has the id \"x\", which no vertex":                                                {p, Pairing{Top: 2, Vertices: written(t, "some.csv", "x\n1\n")}},
		"there is no file or folder":                                                                          {p, Pairing{Top: 2, Vertices: "/nonexistent/some.csv"}},
		"the model learnt no links, but class of vertices":                                                    {classes, Pairing{Top: 2}},
		"the model has learnt triples: give --relation, ":                                                     {triples, Pairing{Pairs: written(t, "pairs.csv", "e1,e2\n")}},
		"the model has learnt triples: give --relation, the name":                                             {triples, Pairing{Top: 2}},
		"the model has learnt links without relations: leave --relation out":                                  {p, Pairing{Top: 2, Relation: new(int)}},
		"predicting needs": {tight, Pairing{Top: 2}},
		"holds scores without ids, which says nothing here": {npy, Pairing{Top: 2}},
	} {
		if err := PredictPairs(t.Context(), c.p, c.of, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if left, err := os.ReadDir(c.p.Folder); err != nil || len(left) != 1 {
			t.Errorf("%s: left are %v, %v", want, left, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := PredictPairs(ctx, p, Pairing{Top: 2}, io.Discard); err == nil {
		t.Error("it was interrupted, and did not say so")
	}
	var out bytes.Buffer
	if err := PredictPairs(t.Context(), npy, Pairing{Pairs: written(t, "pairs.tsv", "1\t2\n3\t4\n")}, &out); err != nil || !strings.Contains(out.String(), "(2, 1)") {
		t.Errorf("%.100q, %v", out.String(), err)
	}
}
