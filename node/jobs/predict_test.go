package jobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// model returns a model of the world's graph, in a folder.
func model(t *testing.T, w *world) (p Prediction) {
	t.Helper()
	d := w.now().Datasets[datasetID]
	shards, err := OpenShards(d, func(dataset string, shard int) string { return filepath.Join(w.dir, dataset, graph.ShardFile(shard)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { CloseShards(shards) })
	recipe := recipe.DefaultRecipe("gcn")
	recipe.Epochs, recipe.Model.Hidden = 3, 4
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), recipe, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return Prediction{Model: filepath.Join(dir, train.CheckpointFile), Shards: shards, Folder: dir, Format: ".npy"}
}

// Rows stand in the order of the source's ids, which is not that of the shards.
func TestPredictionsStandByTheirIDs(t *testing.T) {
	w := newWorld(t)
	p := model(t, w)
	for _, embeddings := range []bool{false, true} {
		p.Embeddings = embeddings
		var columns int
		want := map[int64][]float32{}
		var ids []int64
		for _, s := range p.Shards {
			ids = append(ids, s.Originals.Ints...)
		}
		err := trained.Predict(t.Context(), p.Model, p.Shards, trained.PredictOptions{Embeddings: embeddings},
			func(a trained.Prediction) error { columns = a.Columns; return nil },
			func(first int, rows []float32) error {
				for i := range len(rows) / columns {
					want[ids[first+i]] = bytes32(rows[i*columns : (i+1)*columns])
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Predict(t.Context(), p, &out); err != nil {
			t.Fatal(err)
		}
		body := out.Bytes()[out.Len()-4*columns*len(ids):]
		if header := out.String()[:out.Len()-len(body)]; !strings.HasPrefix(header, "\x93NUMPY") || !strings.Contains(header, "'fortran_order': False") {
			t.Errorf("%q", header)
		}
		moved := false
		for id := range int64(len(ids)) {
			for c := range columns {
				got := math.Float32frombits(binary.LittleEndian.Uint32(body[4*(int(id)*columns+c):]))
				if got != want[id][c] {
					t.Fatalf("vertex %d, column %d: %v, not %v", id, c, got, want[id][c])
				}
			}
			moved = moved || ids[id] != id
		}
		if !moved {
			t.Error("the shards are in the source's order, so this proves nothing")
		}
	}
	left, err := os.ReadDir(p.Folder)
	if err != nil || len(left) != 1 {
		t.Errorf("left %v (%v)", left, err)
	}
}

func bytes32(x []float32) []float32 { return append([]float32(nil), x...) }

// Numbers are merged as they are sorted at once, and what lies between leaves nothing.
func TestOrderOfNumbers(t *testing.T) {
	before, some := runVertices, atOnce
	defer func() { runVertices, atOnce = before, some }()
	r := rand.New(rand.NewPCG(1, 2))
	var shards []*graph.Shard
	var want []int64
	for range 7 {
		s := &graph.Shard{Vertices: r.IntN(400)}
		for range s.Vertices {
			s.Originals.Ints = append(s.Originals.Ints, r.Int64N(1e6)-5e5)
		}
		want = append(want, s.Originals.Ints...)
		shards = append(shards, s)
	}
	slices.Sort(want)
	atOnce = 16
	for _, runVertices = range []int{1, 10, 50, 1000, 1 << 18} {
		dir := t.TempDir()
		o, err := sorted(shards, dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		err = o.each(func(vertices []uint32) error {
			if len(vertices) > atOnce {
				t.Errorf("%d vertices at once", len(vertices))
			}
			for _, v := range vertices {
				got = append(got, o.number(v))
			}
			return nil
		})
		if err = errors.Join(err, o.close()); err != nil || !slices.Equal(got, want) {
			t.Errorf("in runs of %d: %d of %d numbers, %v", runVertices, len(got), len(want), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

// A model that is not there is no other one.
func TestPredictionOfAModelThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	p := model(t, w)
	p.Index = 1
	if err := Predict(t.Context(), p, io.Discard); err == nil {
		t.Error("the second of one model predicts")
	}
	p.Index = trained.BestModel
	if err := Predict(t.Context(), p, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestPredictionsEnd(t *testing.T) {
	w := newWorld(t)
	p := model(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Predict(ctx, p, new(bytes.Buffer)); err == nil {
		t.Error("it was interrupted, and did not say so")
	}
	var out bytes.Buffer
	p.Format = ".PARQUET"
	if err := Predict(t.Context(), p, &out); err != nil || !strings.HasPrefix(out.String(), "PAR1") || !strings.Contains(out.String(), "class_2") || !strings.Contains(out.String(), "class_name") {
		t.Errorf("%v: %.20q", err, out.String())
	}
	var embeddings bytes.Buffer
	p.Embeddings = true
	if err := Predict(t.Context(), p, &embeddings); err != nil || !strings.Contains(embeddings.String(), "embedding_3") || strings.Contains(embeddings.String(), "class_name") {
		t.Errorf("%v: embeddings have columns of classes", err)
	}
	p.Embeddings = false
	p.Format = ".csv"
	if err := Predict(t.Context(), p, &out); err == nil {
		t.Error("there is a format .csv")
	}
	if err := os.Truncate(p.Model, 100); err != nil {
		t.Fatal(err)
	}
	if err := Predict(t.Context(), p, &out); err == nil || !strings.Contains(err.Error(), "the model") {
		t.Errorf("%v", err)
	}
}

// Names stand by their letters; shards without a vertex are no trouble.
func TestOrderOfNames(t *testing.T) {
	named := func(names ...string) *graph.Shard {
		s := &graph.Shard{Vertices: len(names), Originals: graph.Originals{Offsets: []int64{0}}}
		for _, n := range names {
			s.Originals.Bytes = append(s.Originals.Bytes, n...)
			s.Originals.Offsets = append(s.Originals.Offsets, int64(len(s.Originals.Bytes)))
		}
		return s
	}
	before := runVertices
	defer func() { runVertices = before }()
	for _, runVertices = range []int{1, 2, 3, 100} {
		o, err := sorted([]*graph.Shard{named(), named("pear", "fig"), named(), named(), named("apple"), named("quince", ""), named()}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = o.each(func(vertices []uint32) error {
			for _, v := range vertices {
				s, row := o.of(v)
				got = append(got, string(s.Originals.Append(nil, row)))
			}
			return nil
		})
		if err = errors.Join(err, o.close()); err != nil || strings.Join(got, " ") != " apple fig pear quince" {
			t.Errorf("in runs of %d: %q, %v", runVertices, got, err)
		}
	}
	if _, err := sorted([]*graph.Shard{named("a"), {Vertices: 1, Originals: graph.Originals{Ints: []int64{1}}}}, t.TempDir()); err == nil {
		t.Error("names and numbers were mixed")
	}
}

// Columns of predictions have the names of the columns of targets, if these are different.
func TestNamesOfColumns(t *testing.T) {
	for want, of := range map[string]trained.Prediction{
		"[value_speed value_mass]": {Columns: 2, Task: task.Named("regression"), Classes: []string{"speed", "mass"}},
		"[value_0 value_1]":        {Columns: 2, Task: task.Named("regression"), Classes: []string{"a", "a"}},
		"[label_a]":                {Columns: 1, Task: task.Named("multilabel"), Classes: []string{"a"}},
		"[class_0 class_1]":        {Columns: 2, Task: task.Named("class"), Classes: []string{"a", "b"}},
	} {
		if got := fmt.Sprint((&Prediction{Format: ".parquet"}).header(of).Columns); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := (&Prediction{Embeddings: true}).header(of).Columns[0]; got != "embedding_0" {
			t.Error(got)
		}
	}
}
