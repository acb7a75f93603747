package evaluate

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A scorer compares a model's outputs with targets, each part of the split by itself.
type scorer struct {
	task     task.Task
	accurate bool // scores have an accuracy
	// probable means that logits become logarithms of probabilities before they are ranked.
	probable bool

	of     [graph.Test + 1]task.Meter // by mark
	ranks  ranks
	losses [][graph.Test + 1]float64 // of each shard, added up in this order whichever node scored it

	logits  []float32 // of a chunk
	targets []int32
	marks   []graph.Mark
	masked  []int32 // targets of one mark
	values  map[string]float64
	shards  [][]int // of each node
}

func newScorer(of task.Spec) scorer {
	t := task.New(of)
	s := scorer{
		task: t, accurate: task.Named(of.Kind).Accuracy, probable: of.Ranked() && of.Loss == task.Softmax,
		logits: make([]float32, chunkRows*of.Width), targets: make([]int32, chunkRows*t.Words()),
		marks: make([]graph.Mark, chunkRows), masked: make([]int32, chunkRows*t.Words()), values: map[string]float64{},
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		s.of[mark] = t.Meter()
	}
	return s
}

// begin forgets the last evaluation.
func (s *scorer) begin(shards int) {
	if len(s.losses) != shards {
		s.losses = make([][graph.Test + 1]float64, shards)
	}
	clear(s.losses)
	for _, meter := range s.of[graph.Train:] {
		meter.Reset(shards)
	}
}

// chunk adds the logits of one chunk of a shard, whose first vertex is given.
func (s *scorer) chunk(device tensor.Device, d *dataset.Graph, shard, first int, z tensor.Matrix) error {
	words := s.task.Words()
	targets, marks, masked := s.targets[:z.Rows*words], s.marks[:z.Rows], s.masked[:z.Rows*words]
	d.Known(targets, marks, first)
	logits := s.logits[:z.Rows*z.Cols]
	device.Read32(logits, z)
	if s.probable {
		for row := range marks {
			logSoftmax(logits[row*z.Cols:][:z.Cols])
		}
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		n := 0
		for i := range masked {
			masked[i] = graph.NoLabel
		}
		for i := range marks {
			if target := targets[i*words:][:words]; marks[i] == mark && task.Has(target) {
				copy(masked[i*words:], target)
				s.of[mark].Add(shard, logits[i*z.Cols:][:z.Cols], target)
				n++
			}
		}
		if n == 0 {
			continue
		}
		s.losses[shard][mark] += s.task.Loss(device, tensor.Matrix{}, z, masked, 1)
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

// shardsOf returns the shards that a node evaluates.
func (s *scorer) shardsOf(nodes *Nodes, node int) []int {
	for len(s.shards) <= node {
		var of []int
		for shard, owner := range nodes.Layout.Owners {
			if owner == len(s.shards) {
				of = append(of, shard)
			}
		}
		s.shards = append(s.shards, of)
	}
	return s.shards[node]
}

// scores returns the scores of a mark once all of its vertices have been added, and its
// metrics, which are nil where scores say all.
func (s *scorer) scores(mark graph.Mark) (Scores, map[string]float64) {
	count := s.of[mark].Count()
	if count == 0 {
		return Scores{}, nil
	}
	loss := 0.0
	for shard := range s.losses {
		loss += s.losses[shard][mark]
	}
	scores, values := Scores{Count: count, Loss: loss / float64(count)}, s.values
	if clear(values); !s.accurate {
		values = map[string]float64{} // results keep it
	}
	s.of[mark].Values(values)
	s.ranks.values(mark, values)
	if !s.accurate {
		return scores, values
	}
	scores.Accuracy, scores.MacroF1, scores.AUC = values[task.Accuracy], values[task.MacroF1], values[task.ROCAUC]
	return scores, nil
}
