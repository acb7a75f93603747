package train_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

const plantedColumns = 3

// A planted graph has targets that are a linear function of a vertex' features and of the mean of
// its neighbours', which one layer of a sage computes.
type planted struct {
	shards []*graph.Shard
	truth  []float64 // of each column, in the order of shards
}

// plant makes one. A cell in five is missing.
func plant(t *testing.T, targets graph.Targets) planted {
	t.Helper()
	const vertices, features = 400, 5
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: vertices, Edges: 2400, Features: features, Classes: 4, Communities: 8, Inside: 0.7, Homophily: 0.7, Seed: 9,
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]float64, vertices)
	err = src.Features(t.Context(), func(b graph.FeatureBatch) error {
		for i := range len(b.Dense) / features {
			row := make([]float64, features)
			for c, x := range b.Dense[i*features:][:features] {
				row[c] = float64(x)
			}
			rows[b.Vertex(i)] = row
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	truth := trueTargets(t, src, rows)
	missing := func(v, c int) bool { return (v*7+c*3)%5 == 0 }
	of := enginetest.WithTargets(src, targets, plantedColumns, func(v, c int) float64 {
		if missing(v, c) {
			return math.NaN()
		}
		return truth[v][c]
	})
	p := planted{shards: enginetest.Cut(t, of, 4, "")}
	for _, s := range p.shards {
		for row := range s.Vertices {
			p.truth = append(p.truth, truth[s.Originals.Ints[row]]...)
		}
	}
	return p
}

// trueTargets computes the targets from a source.
func trueTargets(t *testing.T, src graph.Source, rows [][]float64) (truth [][]float64) {
	t.Helper()
	in := make([]map[uint32]bool, len(rows))
	err := src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i, u := range b.Src {
			if in[b.Dst[i]] == nil {
				in[b.Dst[i]] = map[uint32]bool{}
			}
			in[b.Dst[i]][u] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for v := range rows {
		targets := make([]float64, plantedColumns)
		for c := range targets {
			for f := range rows[v] {
				mean := 0.0
				for u := range in[v] {
					mean += rows[u][f] / float64(len(in[v]))
				}
				targets[c] += math.Sin(float64(1+c*5+f))*mean + math.Cos(float64(2+c*5+f))*rows[v][f]
			}
		}
		truth = append(truth, targets)
	}
	return truth
}

// plantedRecipe is that of a model that can represent the targets.
func plantedRecipe(kind string) recipe.Recipe {
	r := recipe.DefaultRecipe("sage")
	r.Learn(task.Named(kind))
	r.Model.Layers, r.Model.Dropout, r.Optimizer.WeightDecay, r.Rate, r.Epochs, r.EvalEvery = 1, 0, 0, 0.05, 400, 20
	r.Model.Resolve()
	return r
}

// Numbers that the model can represent are learnt exactly, where they are known; and so are those
// that were missing.
func TestPlantedNumbersAreLearnt(t *testing.T) {
	p := plant(t, graph.Numbers)
	for _, loss := range []string{task.L2, task.Huber} {
		r := plantedRecipe("regression")
		r.Loss = loss
		dir := t.TempDir()
		result, all := traintest.MustRun(t, r, p.shards, train.Options{Threads: 1, Dir: dir})
		first, best := all[r.EvalEvery-1].Scores.Metrics, result.Best.Scores.Metrics
		for part, m := range map[string]map[string]float64{"train": best.Train, "val": best.Val, "test": best.Test} {
			if m[task.RMSE] > 0.01 || m[task.MAE] > m[task.RMSE] || m[task.R2] < 0.999 {
				t.Errorf("%s, %s: %v", loss, part, m)
			}
		}
		if result.Best.Eval.Score != -best.Val[task.RMSE] || result.Best.Eval.Val != nil || best.Val[task.RMSE] > first.Val[task.RMSE]/2 {
			t.Errorf("%s: the best epoch has %+v, the first %v", loss, result.Best.Eval, first.Val)
		}
		predicted, about := traintest.Predicted(t, dir, p.shards, train.Options{Threads: 1}, trained.PredictOptions{})
		worst := 0.0
		for i, y := range p.truth {
			worst = max(worst, math.Abs(float64(predicted[i])-y))
		}
		if worst > 0.1 || about.Task.Name != "regression" || about.Columns != plantedColumns {
			t.Errorf("%s: a number is off by %g: %+v", loss, worst, about)
		}
	}
}

// Labels that the model can separate are learnt, and ranked metrics are those by definition.
func TestPlantedLabelsAreLearnt(t *testing.T) {
	p := plant(t, graph.YesOrNo)
	r := plantedRecipe("multilabel")
	dir := t.TempDir()
	result, _ := traintest.MustRun(t, r, p.shards, train.Options{Threads: 1, Dir: dir})
	best := result.Best.Scores.Metrics
	for part, m := range map[string]map[string]float64{"train": best.Train, "val": best.Val, "test": best.Test} {
		if m[task.MicroF1] < 0.95 || m[task.MacroF1] < 0.95 || part != "train" && (m[task.ROCAUC] < 0.99 || m[task.AveragePrecision] < 0.99) {
			t.Errorf("%s: %v", part, m)
		}
	}
	// After one epoch nothing is perfect yet.
	r.Epochs, r.EvalEvery = 1, 1
	dir = t.TempDir()
	result, _ = traintest.MustRun(t, r, p.shards, train.Options{Threads: 1, Dir: dir})
	logits, _ := traintest.Predicted(t, dir, p.shards, train.Options{Threads: 1}, trained.PredictOptions{})
	area, precision := ranked(p.shards, logits)
	if got := result.Best.Scores.Metrics.Val; math.Abs(got[task.ROCAUC]-area) > 1e-9 || math.Abs(got[task.AveragePrecision]-precision) > 1e-9 || area > 0.99 {
		t.Errorf("%v, and by definition %g and %g", got, area, precision)
	}
}

// ranked returns the area under the curve and the average precision of the validation vertices, by
// definition.
func ranked(shards []*graph.Shard, outputs []float32) (area, precision float64) {
	for c := range plantedColumns {
		var with, without []float32
		for _, s := range shards {
			for row := range s.Vertices {
				x := outputs[(int(s.First)+row)*plantedColumns+c]
				switch cell := s.YesOrNo[row*plantedColumns+c]; {
				case s.Marks[0][row] != graph.Validation || cell == graph.Missing:
				case cell == 1:
					with = append(with, x)
				default:
					without = append(without, x)
				}
			}
		}
		pairs, precisions := 0.0, 0.0
		for _, x := range with {
			above := func(list []float32) (n float64) {
				for _, y := range list {
					if y >= x {
						n++
					}
				}
				return n
			}
			precisions += above(with) / (above(with) + above(without))
			for _, y := range without {
				if x > y {
					pairs++
				} else if x == y {
					pairs += 0.5
				}
			}
		}
		area += pairs / float64(len(with)*len(without)) / plantedColumns
		precision += precisions / float64(len(with)) / plantedColumns
	}
	return area, precision
}

// An error that gets no better ends a run early.
func TestPatienceWithErrors(t *testing.T) {
	p := plant(t, graph.Numbers)
	r := plantedRecipe("regression")
	r.Metric, r.Patience, r.EvalEvery, r.Rate = task.MAE, 3, 1, 2
	result, all := traintest.MustRun(t, r, p.shards, train.Options{Threads: 1})
	errors := make([]float64, len(all))
	for i, e := range all {
		errors[i] = e.Scores.Metrics.Val[task.MAE]
	}
	least := slices.Min(errors)
	if len(all) == r.Epochs || errors[result.Best.Epoch-1] != least || len(all) != result.Best.Epoch+3 {
		t.Errorf("%d epochs, of which %d is the best: errors %v", len(all), result.Best.Epoch, errors)
	}
}

// A device with memory of its own learns the same as the processor.
func TestTargetsAbroad(t *testing.T) {
	for _, kind := range []string{"multilabel", "regression"} {
		p := plant(t, task.Named(kind).Targets)
		r := plantedRecipe(kind)
		r.Epochs, r.EvalEvery = 4, 1
		o := train.Options{Threads: 1}
		_, here := traintest.MustRun(t, r, p.shards, o)
		_, there := traintest.MustRun(t, r, p.shards, traintest.Abroad(o, nil))
		if a, b := traintest.Learnt(here), traintest.Learnt(there); a != b {
			t.Errorf("%s: here\n%s\nand there\n%s", kind, a, b)
		}
	}
}

// A strategy that learns classes only, and a dataset with other targets, are refused in one
// sentence.
func TestTargetsThatDoNotFit(t *testing.T) {
	p := plant(t, graph.Numbers)
	for want, change := range map[string]func(r *recipe.Recipe){
		"{strategy} pipe learns one class of each vertex, and the task is regression: choose one of ": func(r *recipe.Recipe) { r.Sharing.Strategy = "pipe" },
		"{task} is class, and the dataset has targets of regression: leave it out, or import":         func(r *recipe.Recipe) { r.Learn(task.Named("class")) },
		"{task} is multilabel, and the dataset has targets of regression":                             func(r *recipe.Recipe) { r.Learn(task.Named("multilabel")) },
		`{train.loss} is "softmax": it is one of l2, l1, huber`:                                       func(r *recipe.Recipe) { r.Loss = task.Softmax },
		`{train.metric} is "accuracy": it is one of rmse, mae, r2`:                                    func(r *recipe.Recipe) { r.Metric = task.Accuracy },
		`{task} is "links": it is one of class, multilabel, regression`:                               func(r *recipe.Recipe) { r.Task = "links" },
	} {
		r := plantedRecipe("regression")
		change(&r)
		_, err := train.Run(context.Background(), r, p.shards, train.Options{Strategies: traintest.Pipelines, Threads: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}

// Targets of a real graph: each class of Cora as a label by itself, and how many papers one is cited
// with.
func TestTargetsOfCora(t *testing.T) {
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	degrees := make([]int, src.Meta().Vertices)
	err = src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for _, v := range b.Dst {
			degrees[v]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, model string
		columns     int
		of          func(v, c int) float64
		least       map[string]float64
	}{
		{"multilabel", "gcn", 7, func(v, c int) float64 {
			if src.Labels()[v] == int32(c) {
				return 1
			}
			return 0
		}, map[string]float64{task.MicroF1: 0.6, task.ROCAUC: 0.94, task.AveragePrecision: 0.8}},
		{"regression", "gin", 1, func(v, _ int) float64 { return math.Log1p(float64(degrees[v])) }, map[string]float64{task.R2: 0.6}},
	} {
		r := recipe.DefaultRecipe(c.model)
		r.Learn(task.Named(c.kind))
		r.Model.Hidden, r.Epochs, r.EvalEvery, r.Optimizer.WeightDecay, r.Rate = 16, 200, 10, 5e-5, 0.1
		shards := enginetest.Cut(t, enginetest.WithTargets(src, task.Named(c.kind).Targets, c.columns, c.of), 4, "")
		result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		for name, least := range c.least {
			if got := result.Best.Scores.Metrics.Test; got[name] < least {
				t.Errorf("%s: %v", c.kind, got)
			}
		}
	}
}

// Weights that balance targets are those of a count by hand, on any number of nodes.
func TestBalancedWeights(t *testing.T) {
	classes := traintest.Communities(t, 300)
	traintest.Remarked(classes, func(v int, label *int32, _ *graph.Mark) {
		if v%7 == 0 {
			*label = 1 // a frequent class
		}
	})
	for name, c := range map[string]struct {
		shards []*graph.Shard
		recipe recipe.Recipe
	}{
		"class":      {classes, traintest.Short("sage")},
		"multilabel": {plant(t, graph.YesOrNo).shards, plantedRecipe("multilabel")},
	} {
		r := c.recipe
		r.Epochs, r.EvalEvery, r.Sharing = 2, 1, strategy.Settings{Strategy: "leap", Deterministic: true}
		plain := r
		r.Weights = countedByHand(c.shards)
		hashes := func(nodes int, r recipe.Recipe) string {
			owners := make([]int, len(c.shards))
			for i := range owners {
				owners[i] = i % nodes
			}
			if nodes == 1 {
				_, all := traintest.MustRun(t, r, c.shards, train.Options{Threads: 1})
				return traintest.Learnt(all)
			}
			_, all := traintest.NewMesh(nodes, owners).MustRun(t, r, c.shards, train.Options{Threads: 1})
			return traintest.Hashes(all[0])
		}
		balanced := plain
		balanced.Balanced = true
		want := hashes(2, r)
		if other := hashes(2, plain); other == want {
			t.Errorf("%s: weights change nothing", name)
		}
		for _, nodes := range []int{2, min(5, len(c.shards))} {
			if got := hashes(nodes, balanced); got != want {
				t.Errorf("%s on %d nodes:\n%sby hand\n%s", name, nodes, got, want)
			}
		}
		r.Sharing.Strategy, balanced.Sharing.Strategy = "", ""
		if got, want := hashes(1, balanced), hashes(1, r); got != want {
			t.Errorf("%s on one node:\n%sby hand\n%s", name, got, want)
		}
	}
}

// countedByHand returns the weights of the training vertices of all shards.
func countedByHand(shards []*graph.Shard) []float64 {
	with, without, all, occur := make([]float64, shards[0].Classes), make([]float64, shards[0].Classes), 0., 0.
	for _, s := range shards {
		for row := range s.Vertices {
			for c := range with {
				switch {
				case s.Marks[0][row] != graph.Train:
				case s.Targets == graph.OneClass && int(s.Labels[row]) == c, s.Targets == graph.YesOrNo && s.YesOrNo[row*s.Classes+c] == 1:
					with[c]++
				case s.Targets == graph.YesOrNo && s.YesOrNo[row*s.Classes+c] == 0:
					without[c]++
				}
			}
		}
	}
	for _, n := range with {
		if all += n; n > 0 {
			occur++
		}
	}
	weights := make([]float64, len(with))
	for c := range weights {
		if weights[c] = all / (occur * with[c]); shards[0].Targets == graph.YesOrNo {
			weights[c] = without[c] / with[c]
		}
	}
	return weights
}

// The gradient of a step is that of one node whatever the targets are, with each loss.
func TestGradientsOfTargetsAreThoseOfOneNode(t *testing.T) {
	for _, c := range []struct {
		task, model, loss string
		weights           []float64
	}{
		{task: "multilabel", model: "gcn"}, {task: "multilabel", model: "gat"}, {task: "multilabel", model: "sage", weights: []float64{1, 2, 0.5}},
		{task: "regression", model: "gcn", loss: task.L2}, {task: "regression", model: "gat", loss: task.L1}, {task: "regression", model: "sage", loss: task.Huber},
	} {
		shards := enginetest.TinyTargets(t, task.Named(c.task).Targets, 90, 6)
		r := traintest.ExactRecipe(c.model)
		r.Learn(task.Named(c.task))
		if r.Weights = c.weights; c.loss != "" {
			r.Loss = c.loss
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s %s of %s on %d nodes by %s", c.task, c.loss, c.model, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}
