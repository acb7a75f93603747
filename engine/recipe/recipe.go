package recipe

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/edgewise" // kinds of models that recipes may name
	_ "github.com/hopmesh/hopmesh/engine/nn/hgt"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
)

// A Recipe is everything that decides what is learnt from a graph. Plans and
// checkpoints store a job as a recipe: complete, with nothing left to defaults.
type Recipe struct {
	Model     nn.Spec          `json:"model"`
	Optimizer nn.OptimizerSpec `json:"optimizer"`
	Rate      float64          `json:"lr"`
	Schedule  Schedule         `json:"schedule"`
	Epochs    int              `json:"epochs"`
	Batch     int              `json:"batch"`              // roots per step; 0: all training vertices
	Fanouts   []int            `json:"fanouts,omitempty"`  // from the roots outwards, 0: all; none: all at every hop
	Features  string           `json:"normalize_features"` // auto, row, none, binary or binary-row
	Task      string           `json:"task,omitempty"`     // multilabel, regression or link; empty: class
	Loss      string           `json:"loss"`               // one of the task's
	Patience  int              `json:"patience"`           // evaluations without a better one; 0: never stops early
	EvalEvery int              `json:"eval_every"`         // epochs
	Metric    string           `json:"metric"`             // of the best epoch: one of the task's
	// Each is the fan-out of each relation, of each hop, in place of Fanouts, which are their
	// sums; empty: neighbours are drawn whatever their relation.
	Each [][]int `json:"fanouts_by_relation,omitempty"`
	// Weights are those of the losses of each class, or of a yes in each column; none: all 1.
	Weights []float64 `json:"class_weights,omitempty"`
	// Balanced means that the weights are such that rare targets count as much as frequent
	// ones: they are counted when training begins.
	Balanced bool `json:"balanced_weights,omitempty"`
	// Delta is the error from which on the loss huber is a line; 0: 1.
	Delta float64    `json:"huber_delta,omitempty"`
	Links *link.Spec `json:"links,omitempty"` // of task link; nil: of another task
	Split int        `json:"split"`
	Seed  uint64     `json:"seed"`
	// Embeddings is how many columns the rows have that are learnt of vertices without features; 0:
	// none are learnt.
	Embeddings int `json:"embeddings,omitempty"`
	// EmbeddingsAt is where these rows are: AtAll or AtOwners; "": whatever memory has room for. It
	// changes nothing that is learnt.
	EmbeddingsAt string `json:"embeddings_at,omitempty"`
	// Bare are the columns of features that say that a vertex is of a type without any, whose
	// vertices alone have learnt rows then; none: there are no features at all.
	Bare []int `json:"bare_columns,omitempty"`
	// From is the model whose weights training starts from; nil: weights are drawn.
	From *From `json:"from,omitempty"`
	BF16 bool  `json:"bf16_products"` // products of BF16 numbers, where the CPU has them
	// Sharing is how nodes share the work. It changes what is learnt only in the last
	// digits of sums, except where noted.
	Sharing strategy.Settings `json:"sharing,omitzero"`
	// Sweep lists the models that are trained on the same batches, if there are
	// several. The rest of the recipe is that of the first of them.
	Sweep []Variant `json:"sweep,omitempty"`
}

// A Variant is one model of a sweep.
type Variant struct {
	Params map[string]string `json:"params"` // that make it differ, as they were typed
	Recipe Recipe            `json:"recipe"` // whole, and without a sweep
}

// Models returns the recipes of all models that are trained.
func (r *Recipe) Models() []Recipe {
	if len(r.Sweep) == 0 {
		return []Recipe{*r}
	}
	var all []Recipe
	for _, v := range r.Sweep {
		all = append(all, v.Recipe)
	}
	return all
}

// The losses and the metrics.
const (
	Softmax = task.Softmax
	BCE     = task.BCE

	Accuracy = task.Accuracy
	MacroF1  = task.MacroF1
	ROCAUC   = task.ROCAUC
)

// TaskSpec returns what the recipe and a dataset say of the task. Weights that balance targets
// are 1 each until these have been counted.
func (r *Recipe) TaskSpec(of *dataset.About) task.Spec {
	s := task.Spec{Kind: r.Task, Loss: r.Loss, Metric: r.Metric, Width: of.Classes, Weights: r.Weights, Delta: r.Delta, Links: r.Links}
	if r.Balanced {
		if s.Weights = of.Balance; s.Weights == nil {
			s.Weights = slices.Repeat([]float64{1}, of.Classes)
		}
	}
	return s
}

// links returns what the recipe says of links, the default if it says nothing.
func (r *Recipe) links() *link.Spec { return cmp.Or(r.Links, link.Default()) }

// NewModel returns the model of the recipe, whose weights end with those of the decoder where
// pairs are learnt.
func (r *Recipe) NewModel(features, classes int) (*nn.Model, error) {
	m, err := nn.New(r.Model, features, classes)
	if err == nil && r.Embeddings > 0 {
		m.LearnInput()
	}
	if err != nil || !r.kind().Pairs {
		return m, err
	}
	return link.Extend(m, r.links().Decoder, classes, r.links().Relations)
}

// Sees returns a dataset's description as the models of the recipe see it.
func (r *Recipe) Sees(about dataset.About) dataset.About {
	about.Features += r.Embeddings
	if r.kind().Pairs {
		return about.Linked(r.links())
	}
	return about
}

// Learn sets the task. Its loss and metric are the task's defaults, but for what was said: keys
// of Set.
func (r *Recipe) Learn(kind *task.Kind, said ...string) {
	if r.Task = kind.Name; kind == task.Kinds[0] {
		r.Task = ""
	}
	if kind.Pairs {
		r.Links = r.links()
	}
	if !slices.Contains(said, lossKey) {
		r.Loss = kind.Losses[0].Name
	}
	if !slices.Contains(said, metricKey) {
		r.Metric = kind.Metrics[0].Name
	}
}

// balanced stands for weights that balance targets.
const balanced = "balanced"

const (
	lossKey   = "train.loss"
	metricKey = "train.metric"
	ranksKey  = "link.ranks"
	hitsKey   = "link.hits"

	decoderKey = "link.decoder"
)

// DefaultRecipe returns the recipe of a job that sets only its model.
func DefaultRecipe(model string) Recipe {
	return Recipe{
		Model:     nn.Defaults(model),
		Optimizer: nn.OptimizerSpec{Kind: "adam", WeightDecay: 5e-4},
		Rate:      0.01,
		Schedule:  Schedule{Kind: Constant},
		Epochs:    200,
		Features:  "auto",
		Loss:      Softmax,
		EvalEvery: 1,
		Metric:    Accuracy,
	}
}

// A Schedule is how the learning rate changes.
type Schedule struct {
	Kind   string  `json:"kind"`             // constant, step, cosine or plateau
	Warmup int     `json:"warmup,omitempty"` // epochs of linear rise before it
	Every  int     `json:"every,omitempty"`  // step: epochs; plateau: evaluations
	Factor float64 `json:"factor,omitempty"` // step and plateau
	Least  float64 `json:"least,omitempty"`  // cosine and plateau: never below
}

// The kinds of schedules.
const (
	Constant = "constant"
	Step     = "step"
	Cosine   = "cosine"
	Plateau  = "plateau"
)

// usualEvery and usualFactor are the defaults of schedules that lower the rate.
var usualEvery = map[string]int{Step: 50, Plateau: 10}

const usualFactor = 0.5

// Choose sets the kind, and the defaults of what is not set yet. Defaults of the kind
// chosen before are dropped.
func (s *Schedule) Choose(kind string) {
	if s.lowers() && s.Every == usualEvery[s.Kind] {
		s.Every = 0
	}
	if s.lowers() && s.Factor == usualFactor {
		s.Factor = 0
	}
	s.Kind = kind
	if !s.lowers() {
		return
	}
	if s.Every == 0 {
		s.Every = usualEvery[kind]
	}
	if s.Factor == 0 {
		s.Factor = usualFactor
	}
}

// lowers reports whether the schedule lowers the rate in steps.
func (s *Schedule) lowers() bool { return s.Kind == Step || s.Kind == Plateau }

// Rate returns the rate of an epoch, from 1, out of so many. falls is how often a
// plateau has lowered it before.
func (s *Schedule) Rate(base float64, epoch, epochs, falls int) float64 {
	if epoch <= s.Warmup {
		return base * float64(epoch) / float64(s.Warmup)
	}
	since := float64(epoch - 1 - s.Warmup)
	switch s.Kind {
	case Step:
		return base * math.Pow(s.Factor, math.Floor(since/float64(s.Every)))
	case Cosine:
		// The first epoch has the base rate; one after the last would have the least.
		whole := float64(epochs - s.Warmup)
		return s.Least + (base-s.Least)*(1+math.Cos(math.Pi*since/whole))/2
	case Plateau:
		return max(s.Least, base*math.Pow(s.Factor, float64(falls)))
	}
	return base
}

// A setting is one key of --set that is not the model's.
type setting struct {
	nn.Option
	set func(r *Recipe, value string) error
}

// losses and metrics are those of all tasks.
var losses, metrics = ofTasks((*task.Kind).LossNames), ofTasks((*task.Kind).MetricNames)

// ofTasks lists names of all tasks, each once.
func ofTasks(names func(*task.Kind) []string) (all []string) {
	for _, kind := range task.Kinds {
		for _, name := range names(kind) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// byTask lists the first name of each task.
func byTask(names func(*task.Kind) []string) string {
	var all []string
	for _, kind := range task.Kinds {
		all = append(all, names(kind)[0])
	}
	return strings.Join(all, ", ")
}

var settings = []setting{
	{nn.Option{Key: "train.schedule", Applies: "train", Values: "constant|step|cosine|plateau", Default: Constant,
		Help: "how the learning rate changes over the epochs"},
		func(r *Recipe, v string) error {
			return word(v, func(v string) { r.Schedule.Choose(v) }, Constant, Step, Cosine, Plateau)
		}},
	{nn.Option{Key: "train.warmup", Applies: "train", Values: "EPOCHS", Default: "0",
		Help: "epochs over which the learning rate rises before the schedule begins"},
		func(r *Recipe, v string) error { return integer(v, &r.Schedule.Warmup) }},
	{nn.Option{Key: "train.step_every", Applies: "train.schedule step, plateau", Values: "N", Default: "50, 10",
		Help: "epochs (step), or evaluations without a better one (plateau), before the rate falls"},
		func(r *Recipe, v string) error { return integer(v, &r.Schedule.Every) }},
	{nn.Option{Key: "train.factor", Applies: "train.schedule step, plateau", Values: "X", Default: "0.5",
		Help: "what the rate is multiplied by each time it falls"},
		func(r *Recipe, v string) error { return number(v, &r.Schedule.Factor) }},
	{nn.Option{Key: "train.least_lr", Applies: "train.schedule cosine, plateau", Values: "X", Default: "0",
		Help: "what the rate does not fall below"},
		func(r *Recipe, v string) error { return number(v, &r.Schedule.Least) }},
	{nn.Option{Key: "train.momentum", Applies: "{optimizer} sgd", Values: "X", Default: "0",
		Help: "how much of the last update is repeated"},
		func(r *Recipe, v string) error { return number(v, &r.Optimizer.Momentum) }},
	{nn.Option{Key: lossKey, Applies: "train", Values: strings.Join(losses, "|"), Default: byTask((*task.Kind).LossNames),
		Help: "one class of all, a yes or no for each, or how far a number is off"},
		func(r *Recipe, v string) error { return word(v, func(v string) { r.Loss = v }, losses...) }},
	{nn.Option{Key: "train.huber_delta", Applies: "{train.loss} huber", Values: "X", Default: "1",
		Help: "error up to which the loss is half its square, and from which on it is a line"},
		func(r *Recipe, v string) error { return number(v, &r.Delta) }},
	{nn.Option{Key: metricKey, Applies: "train", Values: strings.Join(metrics, "|"), Default: byTask((*task.Kind).MetricNames),
		Help: "what the best epoch is best in, on the validation vertices"},
		func(r *Recipe, v string) error {
			if task.IsHits(v) {
				r.Metric = v
				return nil
			}
			return word(v, func(v string) { r.Metric = v }, metrics...)
		}},
	{nn.Option{Key: "train.class_weights", Applies: "train", Values: "W,W...|balanced", Default: "1 each",
		Help: "weight of the loss of each class, or of a yes in each column; balanced: the rarer, the more"},
		func(r *Recipe, v string) error {
			r.Weights = nil
			if r.Balanced = v == balanced; r.Balanced {
				return nil
			}
			for one := range strings.SplitSeq(v, ",") {
				var x float64
				if err := number(strings.TrimSpace(one), &x); err != nil {
					return err
				}
				r.Weights = append(r.Weights, x)
			}
			return nil
		}},
	{nn.Option{Key: "link.width", Applies: "{task} link", Values: "N", Default: strconv.Itoa(link.Default().Width),
		Help: "columns of the embeddings that pairs are scored by"},
		func(r *Recipe, v string) error {
			return linked(r, func(s *link.Spec) error { return integer(v, &s.Width) })
		}},
	{nn.Option{Key: "link.negatives", Applies: "{task} link", Values: "N|FROM|FROM:N", Default: link.Froms[0] + ":" + strconv.Itoa(link.Default().Negatives),
		Help: "what is drawn in place of the target of each pair of a step: uniform, vertices for each pair; source, vertices for all pairs of a source; batch, targets of the step"},
		func(r *Recipe, v string) error {
			return linked(r, func(s *link.Spec) error { return negatives(s, v) })
		}},
	{nn.Option{Key: decoderKey, Applies: "{task} link", Values: strings.Join(link.Decoders, "|"), Default: link.Decoders[0],
		Help: "what scores a pair of embeddings"},
		func(r *Recipe, v string) error {
			return linked(r, func(s *link.Spec) error { return word(v, func(v string) { s.Decoder = v }, link.Decoders...) })
		}},
	{nn.Option{Key: "link.margin", Applies: "{train.loss} margin", Values: "X", Default: "1",
		Help: "how far the score of a pair must be ahead of a negative's for a loss of 0"},
		func(r *Recipe, v string) error {
			return linked(r, func(s *link.Spec) error { return number(v, &s.Margin) })
		}},
	{nn.Option{Key: ranksKey, Applies: "{task} link", Values: "N|all|given|given-source", Default: strconv.Itoa(link.JobRanks) + ", or given",
		Help: "drawn vertices among which evaluations rank the target of each pair, for mrr and hits; 0: they don't; given: the pairs that the dataset has to compare with, all or those of the source"},
		func(r *Recipe, v string) error {
			return linked(r, func(s *link.Spec) error { return ranks(s, v) })
		}},
	{nn.Option{Key: hitsKey, Applies: "{task} link", Values: "K,K...", Default: "1,3,10",
		Help: "up to three ranks up to which a pair is a hit, for the metrics hits_at_K"},
		func(r *Recipe, v string) error { return linked(r, func(s *link.Spec) error { return hits(s, v) }) }},
	{nn.Option{Key: "link.relation", Applies: "{task} link", Values: "NAME", Default: "all edges",
		Help: "relation of a graph with types whose edges are learnt: others are for messages, and negatives are vertices at which it ends"},
		func(r *Recipe, v string) error {
			return linked(r, func(s *link.Spec) error { s.Relation = &link.Relation{Name: v}; return nil })
		}},
	{nn.Option{Key: EmbeddingsKey, Applies: "train", Values: "COLUMNS|off", Default: strconv.Itoa(usualEmbeddings) + " where vertices have no features",
		Help: "columns of a row that is learnt of each vertex, in place of features"},
		func(r *Recipe, v string) error {
			if v == "off" {
				r.Embeddings = 0
				return nil
			}
			return integer(v, &r.Embeddings)
		}},
	{nn.Option{Key: embeddingsAtKey, Applies: "{train.embeddings}", Values: "auto|" + AtAll + "|" + AtOwners, Default: "auto",
		Help: "which nodes have a learnt row: all; its shard's owner and one more, for tables larger than a node's memory; auto: all if they have room"},
		func(r *Recipe, v string) error {
			return word(v, func(v string) {
				if r.EmbeddingsAt = v; v == "auto" {
					r.EmbeddingsAt = ""
				}
			}, "auto", AtAll, AtOwners)
		}},
	{nn.Option{Key: "train.products", Applies: "train", Values: "f32|bf16", Default: "f32",
		Help: "bf16 is faster where the CPU multiplies such numbers, and less exact"},
		func(r *Recipe, v string) error {
			return word(v, func(v string) { r.BF16 = v == "bf16" }, "f32", "bf16")
		}},
}

// Settings lists the keys of Set, the model's own last.
func Settings(strategies strategy.Declarations) []nn.Option {
	var all []nn.Option
	for _, s := range settings {
		all = append(all, s.Option)
	}
	for _, k := range strategies.Keys() {
		all = append(all, nn.Option{Key: k.Key, Applies: k.Applies, Values: k.Values, Default: k.Default, Help: k.Help})
	}
	return append(all, nn.Options()...)
}

// Set parses and sets one --set KEY=VALUE.
func (r *Recipe) Set(key, value string, strategies strategy.Declarations) error {
	for _, s := range settings {
		if s.Key != key {
			continue
		}
		if err := s.set(r, value); err != nil {
			return fmt.Errorf("{%s}=%s: %w", key, value, err)
		}
		return nil
	}
	if known, err := strategies.Set(&r.Sharing, key, value); known {
		return err
	}
	for _, o := range nn.Options() {
		if o.Key == key {
			return r.Model.Set(key, value)
		}
	}
	return fmt.Errorf("there is no setting %s: {train.options} lists what there is", key)
}

func word(value string, set func(string), known ...string) error {
	if !slices.Contains(known, value) {
		return fmt.Errorf("it is one of %s", strings.Join(known, ", "))
	}
	set(value)
	return nil
}

// SplitEdges sets the shares of all pairs that are for training, validation and test.
func (r *Recipe) SplitEdges(shares [3]float64) {
	of := *r.links()
	of.Split = shares
	r.Links = &of
}

// linked sets a part of what the recipe says of links, in a copy that no other recipe has.
func linked(r *Recipe, set func(s *link.Spec) error) error {
	of := *r.links()
	r.Links = &of
	return set(r.Links)
}

func integer(value string, to *int) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%q is no whole number", value)
	}
	*to = n
	return nil
}

func number(value string, to *float64) error {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", value)
	}
	*to = x
	return nil
}

// Digest returns the digest of all that the nodes of a run must agree on.
func (r *Recipe) Digest(w peer.Work) [sha256.Size]byte {
	text, err := json.Marshal(struct {
		Recipe  *Recipe
		Nodes   []string
		Owners  []int
		Holders [][]int
		Weights []uint64
	}{r, w.Nodes, w.Owners, w.Holders, w.Weights})
	if err != nil {
		return sha256.Sum256([]byte(err.Error()))
	}
	return sha256.Sum256(text)
}
