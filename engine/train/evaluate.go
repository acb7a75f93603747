package train

import (
	"context"
	"math"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// loss is the sum of the recipe's losses of rows, with its gradient as the device's
// losses have it.
func (t *trainer) loss(dz, z tensor.Matrix, labels []int32, scale float64) (sum float64) {
	if t.recipe.Loss == BCE {
		sum, _ = t.device.BinaryCrossEntropy(dz, z, labels, scale)
	} else {
		sum, _ = t.device.CrossEntropy(dz, z, labels, scale)
	}
	return sum
}

// judges score the logits of all vertices, each part of the split by itself.
type judges struct {
	of     [graph.Test + 1]*metric.Judge // by mark
	losses [graph.Test + 1]float64
	counts [graph.Test + 1]int

	logits []float32 // of a grain
	labels []int32
	marks  []graph.Mark
	masked []int32 // labels of one mark
}

func newJudges(classes int, auc bool) judges {
	j := judges{
		logits: make([]float32, grain*classes), labels: make([]int32, grain),
		marks: make([]graph.Mark, grain), masked: make([]int32, grain),
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		j.of[mark] = metric.New(classes, auc && mark != graph.Train)
	}
	return j
}

// evaluate judges the weights by all vertices, with all their neighbours.
func (t *trainer) evaluate(ctx context.Context) (*Eval, error) {
	defer pprof.SetGoroutineLabels(t.phases.other)
	pprof.SetGoroutineLabels(t.phases.evaluate)
	start := time.Now()
	j := &t.judges
	clear(j.losses[:])
	clear(j.counts[:])
	for _, judge := range j.of[graph.Train:] {
		judge.Reset()
	}
	err := t.infer.run(ctx, len(t.infer.stages), func(first int, z tensor.Matrix) error {
		for row := 0; row < z.Rows; row += grain {
			t.judge(first+row, z.RowRange(row, min(grain, z.Rows-row)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e := &Eval{Train: j.scores(graph.Train), Val: j.scores(graph.Validation), Test: j.scores(graph.Test)}
	e.Seconds = time.Since(start).Seconds()
	return e, nil
}

// judge judges the logits of one grain.
func (t *trainer) judge(first int, z tensor.Matrix) {
	j := &t.judges
	labels, marks, masked := j.labels[:z.Rows], j.marks[:z.Rows], j.masked[:z.Rows]
	t.data.known(labels, marks, first)
	logits := j.logits[:z.Rows*z.Cols]
	t.device.Read32(logits, z)
	if t.recipe.Loss == Softmax && t.recipe.Metric == ROCAUC {
		for row := range labels {
			logarithms(logits[row*z.Cols:][:z.Cols])
		}
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		n := 0
		for i, label := range labels {
			masked[i] = graph.NoLabel
			if marks[i] == mark && label >= 0 {
				masked[i] = label
				j.of[mark].Add(logits[i*z.Cols:][:z.Cols], label)
				n++
			}
		}
		if n > 0 {
			j.counts[mark] += n
			j.losses[mark] += t.loss(tensor.Matrix{}, z, masked, 1)
		}
	}
}

// logarithms turns the logits of a row, to all of which any number may be added,
// into logarithms of probabilities, which can be compared with those of other rows.
func logarithms(row []float32) {
	largest, sum := slices.Max(row), 0.0
	for _, z := range row {
		sum += math.Exp(float64(z - largest))
	}
	log := largest + float32(math.Log(sum))
	for i := range row {
		row[i] -= log
	}
}

func (j *judges) scores(mark graph.Mark) Scores {
	n := j.counts[mark]
	if n == 0 {
		return Scores{}
	}
	s := j.of[mark].Scores()
	return Scores{Count: n, Loss: j.losses[mark] / float64(n), Accuracy: s.Accuracy, MacroF1: s.MacroF1, AUC: s.AUC}
}
