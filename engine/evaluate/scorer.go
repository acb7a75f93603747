package evaluate

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Loss returns the sum of the losses of rows of logits and sets dz, unless it is empty, to
// the gradient of that sum times scale.
func Loss(device tensor.Device, loss string, dz, z tensor.Matrix, labels []int32, scale float64) (sum float64) {
	if loss == BCE {
		sum, _ = device.BinaryCrossEntropy(dz, z, labels, scale)
	} else {
		sum, _ = device.CrossEntropy(dz, z, labels, scale)
	}
	return sum
}

// A scorer compares logits with labels, each part of the split by itself.
type scorer struct {
	loss, metric string

	of     [graph.Test + 1]*metric.Scorer // by mark
	ranks  ranks
	losses [][graph.Test + 1]float64 // of each shard, added up in this order whichever node scored it

	logits []float32 // of a chunk
	labels []int32
	marks  []graph.Mark
	masked []int32 // labels of one mark
}

func newScorer(classes int, loss, by string) scorer {
	s := scorer{
		loss: loss, metric: by,
		logits: make([]float32, chunkRows*classes), labels: make([]int32, chunkRows),
		marks: make([]graph.Mark, chunkRows), masked: make([]int32, chunkRows),
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		s.of[mark] = metric.New(classes)
	}
	return s
}

// begin forgets the last evaluation.
func (s *scorer) begin(shards int) {
	if len(s.losses) != shards {
		s.losses = make([][graph.Test + 1]float64, shards)
	}
	clear(s.losses)
	for _, counts := range s.of[graph.Train:] {
		counts.Reset()
	}
}

// chunk adds the logits of one chunk of a shard, whose first vertex is given.
func (s *scorer) chunk(device tensor.Device, d *dataset.Graph, shard, first int, z tensor.Matrix) error {
	labels, marks, masked := s.labels[:z.Rows], s.marks[:z.Rows], s.masked[:z.Rows]
	d.Known(labels, marks, first)
	logits := s.logits[:z.Rows*z.Cols]
	device.Read32(logits, z)
	if s.loss == Softmax && s.metric == ROCAUC {
		for row := range labels {
			logSoftmax(logits[row*z.Cols:][:z.Cols])
		}
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		n := 0
		for i, label := range labels {
			masked[i] = graph.NoLabel
			if marks[i] == mark && label >= 0 {
				masked[i] = label
				s.of[mark].Add(logits[i*z.Cols:][:z.Cols], label)
				n++
			}
		}
		if n == 0 {
			continue
		}
		s.losses[shard][mark] += Loss(device, s.loss, tensor.Matrix{}, z, masked, 1)
		if err := s.ranks.add(mark, logits, masked); err != nil {
			return err
		}
	}
	return nil
}

// logSoftmax turns the logits of a row, which any constant may be added to, into logarithms
// of probabilities, which can be compared with those of other rows.
func logSoftmax(row []float32) {
	largest, sum := slices.Max(row), 0.0
	for _, z := range row {
		sum += math.Exp(float64(z - largest))
	}
	log := largest + float32(math.Log(sum))
	for i := range row {
		row[i] -= log
	}
}

// scores returns the scores of a mark once all of its vertices have been added.
func (s *scorer) scores(mark graph.Mark) Scores {
	counts := s.of[mark].Scores()
	if counts.Count == 0 {
		return Scores{}
	}
	loss := 0.0
	for shard := range s.losses {
		loss += s.losses[shard][mark]
	}
	scores := Scores{Count: counts.Count, Loss: loss / float64(counts.Count), Accuracy: counts.Accuracy, MacroF1: counts.MacroF1}
	if pairs := s.ranks.pairs(mark); pairs != nil {
		scores.AUC = s.of[mark].Area(pairs)
	}
	return scores
}
