package train_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// onNodes are runs of a recipe alone and shared: each returns what every node has told.
func onNodes(t *testing.T, owners int, run func(name string, nodes func(recipe.Recipe) ([]train.Result, [][]trained.Epoch, error))) {
	t.Helper()
	shards := traintest.Communities(t, 1500)
	run("alone", func(r recipe.Recipe) ([]train.Result, [][]trained.Epoch, error) {
		var reports []trained.Epoch
		lost := map[int]string{}
		result, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All,
			Threads: 2, Report: func(e trained.Epoch) { reports = append(reports, e) }, Lost: func(model int, why string) { lost[model] = why },
		})
		for k, of := range result.Models {
			if lost[k] != of.Diverged {
				t.Errorf("of model %d %q was told, and it ends with %q", k, lost[k], of.Diverged)
			}
		}
		return []train.Result{result}, [][]trained.Epoch{reports}, err
	})
	for name, sharing := range map[string]strategy.Settings{"leap": sweepSharings()["leap"], "migrate": sweepSharings()["migrate"], "local": traintest.Updating("2", 3).With("leap.cache=off")} {
		run(name, func(r recipe.Recipe) ([]train.Result, [][]trained.Epoch, error) {
			r = everywhere(r, func(of *recipe.Recipe) { of.Sharing = sharing })
			return traintest.NewMesh(3, traintest.Uneven(len(shards), owners)).Run(t.Context(), r, shards, train.Options{Threads: 1}, nil)
		})
	}
}

// One that has stopped for want of patience leaves the others as they are.
func TestAModelOfASweepStopsEarlyByItself(t *testing.T) {
	r := traintest.Small("sage")
	r.Epochs = 9
	r = traintest.Swept(r, "lr=0.03 patience=1", "lr=0.003", "lr=0.3 patience=1")
	onNodes(t, 3, func(name string, run func(recipe.Recipe) ([]train.Result, [][]trained.Epoch, error)) {
		alone := soloists(t, r, func(r recipe.Recipe) []trained.Epoch {
			_, reports, err := run(r)
			if err != nil {
				t.Fatal(err)
			}
			return reports[0]
		})
		results, reports, err := run(r)
		if err != nil {
			t.Fatal(err)
		}
		early := 0
		for node, result := range results {
			asAlone(t, name, reports[node], alone)
			for k, of := range result.Models {
				if stopped := len(alone[k]) < r.Epochs; of.Early != stopped || of.Last.Epoch != len(alone[k]) || of.Diverged != "" {
					t.Errorf("%s: model %d ends with %+v, and alone after %d epochs", name, k, of, len(alone[k]))
				} else if stopped {
					early++
				}
			}
			if result.Best.Better(result.Models[result.Best.Model].Best.Record) || result.Last.Model != result.Best.Model {
				t.Errorf("%s: the best is %+v", name, result)
			}
			for _, of := range result.Models {
				if of.Best.Better(result.Best.Record) {
					t.Errorf("%s: %+v is better than the best", name, of.Best)
				}
			}
		}
		if early == 0 || len(alone[1]) < r.Epochs {
			t.Errorf("%s: %d models have stopped early, and the second one after %d epochs", name, early, len(alone[1]))
		}
	})
}

// One that has diverged ends by itself, and what it took is told with the others.
func TestAModelOfASweepDivergesByItself(t *testing.T) {
	for _, sweep := range []recipe.Recipe{traintest.Swept(traintest.Small("gcn"), "lr=1e36 optimizer=sgd", "lr=0.01", "lr=0.03"), traintest.Swept(traintest.Small("gcn"), "lr=0.01", "lr=1e36 optimizer=sgd", "lr=0.03"), traintest.Swept(traintest.Small("gcn"), "lr=1e38 optimizer=sgd", "lr=1e36 optimizer=sgd", "lr=0.03")} {
		onNodes(t, 3, func(name string, run func(recipe.Recipe) ([]train.Result, [][]trained.Epoch, error)) {
			results, reports, err := run(sweep)
			if err != nil {
				t.Fatal(name, err)
			}
			for k, of := range sweep.Sweep {
				lost := of.Recipe.Rate > 1
				for node, result := range results {
					said := result.Models[k].Diverged
					if lost != strings.Contains(said, "(lr=1e3") || lost != strings.HasSuffix(said, "start again with a smaller {lr}") {
						t.Errorf("%s: node %d says of model %d %q", name, node, k, said)
					}
					if lost && len(ofModel(reports[node], k)) > 0 || result.Diverged != "" {
						t.Errorf("%s: node %d tells of the epochs of model %d, which diverged, and ends with %+v", name, node, k, result)
					}
				}
				if lost {
					continue
				}
				_, alone, err := run(of.Recipe)
				if err != nil {
					t.Fatal(name, err)
				}
				for node := range reports {
					if got := ofModel(reports[node], k); traintest.Learnt(got) != traintest.Learnt(alone[0]) {
						t.Errorf("%s: node %d, model %d learns\n%s\nand alone\n%s", name, node, k, traintest.Learnt(got), traintest.Learnt(alone[0]))
					}
					if got, want := inputs(reports[node]), inputs(alone[0]); got != want {
						t.Errorf("%s: a sweep took %s\nand one model %s", name, got, want)
					}
				}
			}
		})
	}
}

// A sweep of which every model has diverged has failed, as a run of one has.
func TestASweepFailsWhenAllItsModelsDiverge(t *testing.T) {
	r := traintest.Swept(traintest.Small("gcn"), "lr=1e36 optimizer=sgd", "lr=1e37 optimizer=sgd")
	onNodes(t, 3, func(name string, run func(recipe.Recipe) ([]train.Result, [][]trained.Epoch, error)) {
		results, _, err := run(r)
		d, ok := errors.AsType[*trained.Diverged](err)
		if !ok || !train.Together(err) || d.Checkpoint != "" || !strings.Contains(err.Error(), "all 2 models of the sweep have diverged: model 0 (lr=1e36, optimizer=sgd) diverged: in epoch 1, step ") {
			t.Errorf("%s: %v", name, err)
		}
		for _, result := range results {
			if len(result.Models) != 2 || result.Models[1].Diverged == "" {
				t.Errorf("%s: %+v", name, result)
			}
		}
	})
}

// The last update of an epoch, and its evaluation, may be what is too large.
func TestAModelOfASweepDivergesAtTheEndOfAnEpoch(t *testing.T) {
	r := traintest.Short("gcn")
	r.Batch, r.Fanouts = 0, nil
	r = traintest.Swept(r, "lr=1e38 optimizer=sgd", "lr=1e300 optimizer=sgd", "lr=0.01")
	onNodes(t, 3, func(name string, run func(recipe.Recipe) ([]train.Result, [][]trained.Epoch, error)) {
		if name == "local" {
			return // a step of one batch is averaged before its end
		}
		results, reports, err := run(r)
		if err != nil {
			t.Fatal(name, err)
		}
		_, alone, err := run(r.Sweep[2].Recipe)
		if err != nil {
			t.Fatal(name, err)
		}
		for node, result := range results {
			if got, want := traintest.Learnt(reports[node])+inputs(reports[node]), traintest.Learnt(alone[0])+inputs(alone[0]); got != want {
				t.Errorf("%s: told is\n%s\nand alone\n%s", name, got, want)
			}
			for k, of := range result.Models {
				if why := []string{"the loss of its evaluation is not finite", "the weight layers.0.weight is not finite", ""}[k]; !strings.Contains(of.Diverged, why) || (why == "") != (of.Diverged == "") {
					t.Errorf("%s: model %d ends with %q", name, k, of.Diverged)
				}
			}
		}
	})
}

// A checkpoint keeps that a model has diverged, with the best that it had learnt.
func TestADivergedModelStaysSo(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Epochs = 2
	r = traintest.Swept(r, "lr=1e36 optimizer=sgd", "lr=0.01")
	dir := t.TempDir()
	o := train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Dataset: "d", Resume: true}
	first, _ := traintest.MustRun(t, r, shards, o)
	longer := everywhere(r, func(of *recipe.Recipe) { of.Epochs = 4 })
	heard := ""
	o.Lost = func(model int, why string) { heard += fmt.Sprint(model, " ", why) }
	got, all := traintest.MustRun(t, longer, shards, o)
	if heard != "0 "+got.Models[0].Diverged {
		t.Errorf("of models that had diverged %q is told", heard)
	}
	if got.Models[0].Diverged == "" || got.Models[0].Diverged != first.Models[0].Diverged {
		t.Errorf("it ends with %+v, and ended with %+v", got.Models[0], first.Models[0])
	}
	if len(all) != 2 || all[0].Model != 1 || all[1].Epoch != 4 {
		t.Errorf("told is of %+v", all)
	}
	path := filepath.Join(dir, train.CheckpointFile)
	if _, err := trained.ReadWeighed(path, 0); err == nil || !strings.Contains(err.Error(), "model 0 has diverged before its first evaluation") {
		t.Error(err)
	}
	if w, err := trained.ReadWeighed(path, trained.BestModel); err != nil || w.Epoch != got.Best.Epoch {
		t.Errorf("the best is %+v, %v", w, err)
	}
}
