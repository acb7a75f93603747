package train

import (
	"context"
	"errors"
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
	losses [][graph.Test + 1]float64     // of each shard: they are added up in that order, whoever judged which

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

// begin forgets what was judged.
func (j *judges) begin(shards int) {
	if len(j.losses) != shards {
		j.losses = make([][graph.Test + 1]float64, shards)
	}
	clear(j.losses)
	for _, judge := range j.of[graph.Train:] {
		judge.Reset()
	}
}

// evaluate judges the weights by all vertices, with all their neighbours. Where several
// nodes share the run, each judges those of its shards, and all return the same.
func (t *learner) evaluate(ctx context.Context) (e *Eval, err error) {
	defer pprof.SetGoroutineLabels(t.phases.other)
	pprof.SetGoroutineLabels(t.phases.evaluate)
	start := time.Now()
	t.judges.begin(len(t.data.shards))
	t.infer.view = t.view
	t.infer.share(t.shared)
	if t.shared != nil {
		h := t.shared.halo
		h.begin(ctx, t.at.Epoch, t.batches.steps+t.index)
		defer func() { err = errors.Join(err, h.end(ctx, err != nil)) }()
		if err := h.meet(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.infer.run(ctx, len(t.infer.stages), func(first int, z tensor.Matrix) error { return t.judgeRows(ctx, first, z) }); err != nil {
		return nil, err
	}
	if err := t.faultNow(); err != nil {
		return nil, err
	}
	e = &Eval{Seconds: time.Since(start).Seconds()}
	if t.shared != nil {
		if err := t.mergeScores(ctx, e); err != nil {
			return nil, err
		}
	}
	j := &t.judges
	e.Train, e.Val, e.Test = j.scores(graph.Train), j.scores(graph.Validation), j.scores(graph.Test)
	return e, nil
}

// judgeRows judges the logits of some rows, which are whole grains.
func (t *trainer) judgeRows(ctx context.Context, first int, z tensor.Matrix) error {
	own := &t.infer.own
	for row := 0; row < z.Rows; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := &own.spans[own.at(first+row)]
		n := own.end(first+row) - first - row
		t.judge(s.shard, int(s.first)+first+row-s.row, z.RowRange(row, n))
		row += n
	}
	return nil
}

// judge judges the logits of one grain of a shard.
func (t *trainer) judge(shard, first int, z tensor.Matrix) {
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
			j.losses[shard][mark] += t.loss(tensor.Matrix{}, z, masked, 1)
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
	s := j.of[mark].Scores()
	if s.Count == 0 {
		return Scores{}
	}
	loss := 0.0
	for shard := range j.losses {
		loss += j.losses[shard][mark]
	}
	return Scores{Count: s.Count, Loss: loss / float64(s.Count), Accuracy: s.Accuracy, MacroF1: s.MacroF1, AUC: s.AUC}
}
