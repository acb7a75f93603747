package grappa

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Corrector weighs the losses of roots to make up for neighbours that their group
// does not see: the fewer it sees, the less a loss counts.
type Corrector struct {
	o      *Settings
	groups int
}

// NewCorrector returns the corrector of a job. It is safe for concurrent use.
func NewCorrector(o *Settings, s *Schedule) *Corrector {
	return &Corrector{o: o, groups: s.groups}
}

// Weigh sets to to the weights of roots, which are of the context's group and of the
// step's batch; blocks are the ones that are computed. It returns nil where all weights
// are 1. They depend on the context, the batch and the blocks alone.
//
// A step's loss is the sum over all roots of weight times loss, divided by how many
// roots there are, times Scale.
func (k *Corrector) Weigh(to []float64, c *Context, batch, roots []uint32, blocks []sample.Block) []float64 {
	corrects := k.o.weighs() && k.o.Shrink != 1 && !(c.whole && k.o.Correction != CorrectReleased && k.o.Hops != allHops)
	if !corrects && k.o.Loss != groupLoss {
		return nil
	}
	to = to[:0]
	for range roots {
		to = append(to, 1)
	}
	if corrects {
		k.correct(to, c, batch, roots, blocks)
	}
	if k.o.Loss == groupLoss {
		own := 0
		for _, v := range batch {
			if c.Root(v) {
				own++
			}
		}
		share := float64(len(batch)) / float64(k.groups*own)
		for i := range to {
			to[i] *= share
		}
	}
	return to
}

// correct sets the weights of the correction.
func (k *Corrector) correct(to []float64, c *Context, batch, roots []uint32, blocks []sample.Block) {
	deeper := 1.0
	if k.o.Hops == allHops {
		// Blocks begin with the outermost; the last is that of the roots.
		for i := range len(blocks) - 1 {
			deeper *= k.mean(c, blocks[i].Vertices[:blocks[i].Rows], nil)
		}
	}
	var mean float64
	switch k.o.Correction {
	case CorrectBatch:
		mean = k.mean(c, batch, c.Root)
	case CorrectReleased:
		mean = released(c, batch)
	}
	for i, v := range roots {
		w := mean
		if k.o.Correction == CorrectNode || k.o.Correction == CorrectSelf {
			w = k.weight(c, v)
		}
		to[i] = k.shrunk(w * deeper)
	}
}

// weight returns the share of v's neighbours that are seen: 1 where it has none.
func (k *Corrector) weight(c *Context, v uint32) float64 {
	a, d, seen := c.Coverage(v)
	switch {
	case !seen:
		return 0
	case a == d:
		return 1
	}
	return (float64(a) + k.o.Pseudo) / (float64(d) + k.o.Pseudo)
}

// mean returns the mean of the weights of those vertices for which of is true.
func (k *Corrector) mean(c *Context, vertices []uint32, of func(uint32) bool) float64 {
	sum, n := 0.0, 0
	for _, v := range vertices {
		if of == nil || of(v) {
			sum += k.weight(c, v)
			n++
		}
	}
	return sum / float64(max(1, n))
}

// released returns the weight that the authors' program gives to a group, which is
// never 1: for comparison.
func released(c *Context, batch []uint32) float64 {
	sum, n := 0.0, 0
	for _, v := range batch {
		if c.Root(v) {
			a, d, _ := c.Coverage(v)
			sum += min(1, float64(max(a, 1))/float64(d+1))
			n++
		}
	}
	return sum / float64(max(1, n))
}

// shrunk draws a weight to 1.
func (k *Corrector) shrunk(w float64) float64 { return (1-k.o.Shrink)*w + k.o.Shrink }

// Sum returns the sum of the weights of so many roots, rounded so that such sums add up
// to the same in any order. weights may be nil.
func Sum(weights []float64, roots int) float64 {
	if weights == nil {
		return float64(roots)
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	const unit = 1 << 24
	return math.Round(sum*unit) / unit
}

// Scale returns the factor for the gradient of a step, the sum over all groups divided
// by how many roots there are, where all weights add up to sum.
func (k *Corrector) Scale(roots int, sum float64) float64 {
	if k.o.Correction != CorrectSelf || sum <= 0 {
		return 1
	}
	return float64(roots) / sum
}

// CheckModel returns an error if a model can't use the settings: where it takes the maximum of
// messages, weighs them itself, or makes them of edges, no message can count more than others.
func CheckModel(o *Settings, m nn.Spec) error {
	var how string
	switch {
	case m.Along():
		how = "makes messages of edges"
	case m.Related():
		how = "weighs messages by relation"
	case m.Model == "gat":
		how = "weighs messages itself"
	case m.Model == "sage" && m.Aggregator == "max":
		how = "with sage.aggregator=max takes the largest of messages"
	default:
		return nil
	}
	switch {
	case o.Correction == CorrectMessage:
		return fmt.Errorf("grappa.correction=%s: %s %s, so that none can count for those that are not seen: choose another correction, or another model", CorrectMessage, m.Named(), how)
	case o.Loader == HaloSampled:
		return fmt.Errorf("grappa.loader=%s: %s %s, so that none can count for those that are left out: choose another loader, or another model", HaloSampled, m.Named(), how)
	}
	return nil
}
