// Package task says what models learn of vertices: how the targets of a vertex are held, the
// loss of a mini-batch and its gradient, the metrics of an evaluation, and which of them
// decides which epoch is best. Each kind of target is one file, and one line in Kinds.
//
// Whoever trains, evaluates or exports asks a Kind or a Task, and compares no names.
package task

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Kinds are the kinds of tasks, each a line. The first is that of recipes that name none.
var Kinds = []*Kind{
	&class,
	&multiLabel,
	&regression,
	&links,
}

// A Kind describes a task as far as no dataset is needed for it.
type Kind struct {
	Name    string        // as users and recipes name it
	Targets graph.Targets // those of the datasets that it learns
	// Losses and Metrics are those that a recipe may name. The first of each is the default.
	Losses  []Loss
	Metrics []Metric
	// Column begins the names of the columns of predictions, and Scores says in words what
	// a row y of predictions is.
	Column, Scores string
	// Pairs means that pairs of vertices are learnt, which edges join or do not, whatever targets
	// the dataset has: the model's outputs are embeddings.
	Pairs bool
	// Accuracy means that evaluations report an accuracy.
	Accuracy bool
	// Ranks returns how the rows of a column are ranked; nil: they can't be. Exclusive means
	// that each row with a target belongs to one column, and to no other.
	Ranks     metric.Side
	Exclusive bool
	// Always means that evaluations rank whatever the metric is.
	Always bool
	// Weighted means that Spec.Weights may be given.
	Weighted bool
	// make makes the task of such a recipe.
	make func(s Spec) Task
}

// A Loss is one that models are trained by.
type Loss struct {
	Name string
	// Output says in words what a row y of the model's output means.
	Output string
}

// A Metric is what epochs are compared by, on the validation vertices.
type Metric struct {
	Name  string
	Lower bool // the lower, the better
	// Ranked means that it compares the outputs of all vertices with each other, which have
	// to be kept and sorted.
	Ranked bool
}

// A Spec is what a recipe and a dataset say of a task. It must have been checked.
type Spec struct {
	Kind   string // its name; empty: the first
	Loss   string
	Metric string
	Width  int // of the model's output
	// Weights are those of the losses of each class, or of a yes in each column; nil: all 1.
	Weights []float64
	// Delta is the error from which on huber is a line; 0: 1.
	Delta float64
	Links *link.Spec // of pairs; nil: the default
}

// Ranked reports whether evaluations rank the outputs of all vertices.
func (s Spec) Ranked() bool {
	k := Named(s.Kind)
	return k.Ranks != nil && (k.Always || MetricNamed(s.Metric).Ranked)
}

// A Task is what a run, or an evaluation, asks. It has memory of its own, so only one
// goroutine at a time may use it.
//
// The targets of a row of the model's output are some 32-bit words. A row without a target has
// graph.NoLabel in each: neither losses nor meters count it. Where pairs are learnt the words are
// of pairs of rows, as package link lays them out, and pairs may be shared in any way.
type Task interface {
	// Words returns how many words the targets of a row are.
	Words() int
	// Loss returns the sum of the losses of the rows of z, and sets dz, unless it is empty,
	// to the gradient of that sum times scale. dz may be z. The loss of a row depends on
	// that row alone, so rows may be shared among nodes in any way.
	Loss(device tensor.Device, dz, z tensor.Matrix, targets []int32, scale float64) (sum float64)
	// OnProcessor means that Loss computes on the processor whatever the device is: it waits
	// for the outputs, and returns the sum at once.
	OnProcessor() bool
	// Meter returns a meter for rows of one part of a split; nil where pairs are learnt.
	Meter() Meter
}

// A Learned task has weights of its own: the last ones of the model's row.
type Learned interface {
	// Attach sets where they are, and what Loss adds their gradient to. Both are empty where there
	// are none.
	Attach(weights, gradients tensor.Matrix)
}

// Bytes returns about how much memory a Learned task takes for so many weights: copies of them, of
// their gradients, and of them once more for evaluations.
func Bytes(weights int) uint64 { return 3 * 8 * uint64(weights) }

// A Meter adds up what the metrics of some rows are made of. Meters of several nodes merge
// into the same bits on each of them, however the shards were shared.
type Meter interface {
	// Reset has it begin anew, for a graph of so many shards.
	Reset(shards int)
	// Add adds a row of a shard that has a target. Rows of one shard come in order.
	Add(shard int, output []float32, target []int32)
	// Exported returns how many bytes Export appends for so many shards.
	Exported(shards int) int
	// Export appends what was added of some shards, which are all that rows were added of.
	Export(to []byte, shards []int) []byte
	// Merge adds what another meter has exported of its shards: of at most most rows. It
	// returns an error, and adds nothing, if no meter can have exported that.
	Merge(from []byte, shards []int, most int) error
	// Count returns how many rows were added. Values sets the metrics of all of them by name,
	// but for those that these rows do not define.
	Count() int
	Values(to map[string]float64)
}

// Named returns the kind of a name, the first for "", or nil if the name is unknown.
func Named(name string) *Kind {
	if name == "" {
		return Kinds[0]
	}
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

// Names returns the names of all kinds.
func Names() (names []string) {
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

// For returns the kind that learns the targets of a dataset.
func For(t graph.Targets) *Kind {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Targets == t })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

// New returns a task.
func New(s Spec) Task { return Named(s.Kind).make(s) }

// LossNames returns the names of the losses.
func (k *Kind) LossNames() (names []string) {
	for _, l := range k.Losses {
		names = append(names, l.Name)
	}
	return names
}

// MetricNames returns the names of the metrics.
func (k *Kind) MetricNames() (names []string) {
	for _, m := range k.Metrics {
		names = append(names, m.Name)
	}
	return names
}

// MetricNamed returns the metric of a name: the zero Metric if no kind has it. A name means
// the same in all kinds.
func MetricNamed(name string) Metric {
	for _, k := range Kinds {
		for _, m := range k.Metrics {
			if m.Name == name {
				return m
			}
		}
	}
	if IsHits(name) {
		return Metric{Name: name, Ranked: true}
	}
	return Metric{}
}

// Output returns in words what a row of the model's output means.
func (k *Kind) Output(loss string) string {
	i := slices.IndexFunc(k.Losses, func(l Loss) bool { return l.Name == loss })
	if i < 0 {
		return ""
	}
	return k.Losses[i].Output
}

// Has reports whether a row has a target.
func Has(target []int32) bool {
	return slices.ContainsFunc(target, func(word int32) bool { return word != graph.NoLabel })
}
