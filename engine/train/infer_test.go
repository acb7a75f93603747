package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// outputs runs stages of a fresh model over all vertices within some memory, which
// is a share of what the whole takes at once.
func outputs(t *testing.T, shards []*graph.Shard, spec nn.Spec, stages int, share float64, dir string) (all []float32, parts int) {
	t.Helper()
	d, err := newData(shards, 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	model, err := nn.New(spec, d.about.Features, d.about.Classes)
	if err != nil {
		t.Fatal(err)
	}
	device := cpu.New(2)
	defer device.Close()
	work, err := device.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	kept := make([]float32, model.Size())
	for i, w := range initial(t, model, 5) {
		kept[i] = float32(w)
	}
	i, err := newInference(d, device, work, 0, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	i.add(model, tensor.OverF32(1, len(kept), kept))
	i.memory = uint64(float64(i.wholeBytes(stages)) * share)
	next := 0
	err = i.run(t.Context(), stages, func(first int, y tensor.Matrix) error {
		if s := i.own.spans[i.own.at(first)]; first != next || (first-s.row)%grain != 0 {
			t.Errorf("rows from %d on come where %d was expected", first, next)
		}
		next += y.Rows
		rows := make([]float32, y.Rows*y.Cols)
		device.Read32(rows, y)
		all = append(all, rows...)
		parts++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if next != d.topology.Vertices() {
		t.Errorf("%d vertices have rows", next)
	}
	return all, parts
}

func TestInferenceInPartsIsTheWhole(t *testing.T) {
	shards := communities(t, 6*grain)
	grains := 0
	for _, s := range shards {
		grains += (s.Vertices + grain - 1) / grain
	}
	specs := map[string]nn.Spec{}
	for _, model := range []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn", "mlp"} {
		s := nn.Defaults(model)
		s.Layers = 3
		specs[model] = s
	}
	jump := nn.Defaults("sage")
	jump.Head, jump.Jump, jump.Layers = nn.HeadLinear, nn.JumpCat, 3
	specs["jump"] = jump
	largest := nn.Defaults("sage")
	largest.Aggregator = "max"
	specs["max"] = largest
	for name, spec := range specs {
		model, err := nn.New(spec, 20, 4)
		if err != nil {
			t.Fatal(err)
		}
		for n := len(model.Stages()); n > 0; n-- {
			dir := t.TempDir()
			whole, one := outputs(t, shards, spec, n, 1, dir)
			some, several := outputs(t, shards, spec, n, 0.3, dir)
			files, most := outputs(t, shards, spec, n, 0, dir)
			if one != 1 || several <= 1 || most < several || most != grains || grains < 8 {
				t.Errorf("%s: %d, %d and %d parts", name, one, several, most)
			}
			for i, x := range whole {
				if math.Float32bits(x) != math.Float32bits(some[i]) || math.Float32bits(x) != math.Float32bits(files[i]) {
					t.Errorf("%s, %d stages: number %d is %g, and %g and %g in parts", name, n, i, x, some[i], files[i])
					break
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s leaves %v, %v", name, left, err)
			}
		}
	}
}

func TestInferenceEndsWithItsContext(t *testing.T) {
	shards := communities(t, 7*grain/2)
	r := small("gcn")
	tr := started(t, r, shards, Options{Threads: 1})
	for _, memory := range []uint64{1 << 40, 1} {
		tr.infer.memory = memory
		ctx, end := context.WithCancelCause(t.Context())
		end(errEnough)
		if _, err := tr.evaluate(ctx); !errors.Is(err, errEnough) {
			t.Errorf("with %d bytes: %v", memory, err)
		}
		parts := 0
		err := tr.infer.run(t.Context(), 2, func(int, tensor.Matrix) error { parts++; return errEnough })
		if !errors.Is(err, errEnough) || parts != 1 {
			t.Errorf("with %d bytes: %v after %d parts", memory, err, parts)
		}
	}
	// Whatever ends it, the files between stages are unmapped.
	maps, err := os.ReadFile("/proc/self/maps")
	if err == nil && strings.Contains(string(maps), "/rows-") {
		t.Errorf("mapped are still:\n%s", maps)
	}
}

func TestAFolderThatCannotBeWrittenIsAnError(t *testing.T) {
	shards := communities(t, 3000)
	tr := started(t, small("gcn"), shards, Options{Threads: 1, Dir: "/nowhere/at/all"})
	tr.infer.memory = 1
	if _, err := tr.evaluate(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Scores are held against what they are by definition, from logits that Predict
// gives.
func TestEvaluationIsExact(t *testing.T) {
	shards := communities(t, 3000)
	for _, loss := range []string{Softmax, BCE} {
		r := small("sage")
		r.Epochs, r.Metric, r.Loss = 2, ROCAUC, loss
		dir := t.TempDir()
		result, _ := mustRun(t, r, shards, Options{Threads: 2, Dir: dir})
		logits, at := predicted(t, dir, shards, Options{Threads: 2}, PredictOptions{})
		if at.Columns != 4 || at.Vertices != 3000 || at.Epoch != result.Best.Epoch || at.Loss != loss {
			t.Errorf("predicted are %+v", at)
		}
		var count, right [graph.Test + 1]int
		var sum [graph.Test + 1]float64
		for _, s := range shards {
			for row, label := range s.Labels {
				mark := s.Marks[0][row]
				if mark == graph.Unmarked || label < 0 {
					continue
				}
				z := logits[(int(s.First)+row)*4:][:4]
				count[mark]++
				sum[mark] += naiveLoss(loss, z, int(label))
				best := 0
				for c := range z {
					if z[c] > z[best] {
						best = c
					}
				}
				if best == int(label) {
					right[mark]++
				}
			}
		}
		e := result.Best.Eval
		for mark, s := range map[graph.Mark]Scores{graph.Train: e.Train, graph.Validation: e.Val, graph.Test: e.Test} {
			accuracy, mean := float64(right[mark])/float64(count[mark]), sum[mark]/float64(count[mark])
			if s.Count != count[mark] || s.Accuracy != accuracy || math.Abs(s.Loss-mean) > 1e-5*mean {
				t.Errorf("mark %d: %+v, and by definition %d, %g, %g", mark, s, count[mark], accuracy, mean)
			}
		}
		if e.Val.AUC <= 0.5 || e.Val.MacroF1 <= 0 {
			t.Errorf("scores are %+v", e.Val)
		}
	}
}

func naiveLoss(loss string, z []float32, label int) float64 {
	if loss == BCE {
		sum := 0.0
		for c, x := range z {
			if c == label {
				x = -x
			}
			sum += math.Log1p(math.Exp(float64(x)))
		}
		return sum
	}
	sum := 0.0
	for _, x := range z {
		sum += math.Exp(float64(x))
	}
	return math.Log(sum) - float64(z[label])
}

// predicted is all that Predict tells of the checkpoint in a folder.
func predicted(t *testing.T, dir string, shards []*graph.Shard, o Options, p PredictOptions) (all []float32, at Prediction) {
	t.Helper()
	path := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		path = fmt.Sprintf("%s/%s", dir, CheckpointFile)
	}
	err := Predict(t.Context(), path, shards, o, p,
		func(what Prediction) error { at = what; return nil },
		func(first int, rows []float32) error {
			if first*at.Columns != len(all) {
				t.Errorf("rows of %d come after %d numbers", first, len(all))
			}
			all = append(all, rows...)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all, at
}
