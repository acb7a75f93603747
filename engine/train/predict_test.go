package train_test

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Scores are held against what they are by definition, from logits that Predict
// gives.
func TestEvaluationIsExact(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for _, loss := range []string{recipe.Softmax, recipe.BCE} {
		r := traintest.Small("sage")
		r.Epochs, r.Metric, r.Loss = 2, recipe.ROCAUC, loss
		dir := t.TempDir()
		result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir})
		logits, at := traintest.Predicted(t, dir, shards, train.Options{Strategies: strategies.All, Threads: 2}, trained.PredictOptions{})
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
		e := result.Best.Scores
		for mark, s := range map[graph.Mark]evaluate.Scores{graph.Train: e.Train, graph.Validation: e.Val, graph.Test: e.Test} {
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
	if loss == recipe.BCE {
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
