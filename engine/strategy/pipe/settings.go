package pipe

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// What users call the strategies.
const (
	Name      = "pipe"
	GraphName = "graph" // one stage of pipe
)

// Settings are those of a job that is trained by pipe or graph.
type Settings struct {
	Graph         bool // the strategy is graph
	Deterministic bool

	Stages    int    // 0: as many as nodes, but no more than layers; or strategy.Asked
	Ways      int    // 0: one for pipe, for graph as many as nodes; or strategy.Asked
	Chunks    int    // of all ways; 0: as many as shards
	Halo      string // Exact, Previous, Sampled or Skip
	Share     int    // of rows that are sampled, in percent
	Age       int    // epochs for which sending is skipped
	Shuffle   bool   // each epoch takes the chunks in an order of its own
	Period    int    // epochs of a history
	Histories string // Made, Left or Zeros
	// Gradients is what stands for gradients at histories: dropped, which is nothing, or
	// kept, which is those of the last epoch.
	Gradients  string
	Compensate bool   // gradients at histories count twice
	Recompute  string // on; off: activations are kept for backward; auto: where memory has room
	// First is who multiplies features by a first layer that makes them narrower: owner or
	// reader.
	First string
}

// The values of pipe.gradients, and of pipe.first.
const (
	dropped, kept = "dropped", "kept"
	owner, reader = "owner", "reader"
)

// mostPipes is how many stages, and how many ways, there may be.
const mostPipes = 1 << 10

func (s *Settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Number(&s.Stages, "pipe.stages",
			"how many stages the layers are cut into: each node has one, as far as there are layers, or what the nodes choose by what they measure",
			strategy.Whole{Unit: "N", Words: []string{"nodes", strategy.Auto}}),
		strategy.Number(&s.Ways, "pipe.ways",
			"how many nodes share a stage, each with a part of the vertices, and bring each other rows before each layer: usually one or, for graph, as many as there are; or what the nodes choose",
			strategy.Whole{Unit: "N", Words: []string{"usual", strategy.Auto}}),
		strategy.Number(&s.Chunks, "pipe.chunks",
			"how many chunks the vertices are in, which go through the stages one after the other: more have less idle time, and older rows of each other",
			strategy.Whole{Unit: "N", Words: []string{"shards"}}),
		strategy.Word(&s.Halo, "pipe.halo",
			"which rows ways see of each other: those of now, those of the last epoch, a share of them, scaled up, or those that were sent some epochs ago",
			Exact, Previous, Sampled, Skip),
		strategy.Number(&s.Share, "pipe.share",
			"of the rows that ways sample of each other",
			strategy.Whole{Unit: "PERCENT", Most: 100, Default: 10, Of: ", in percent"}),
		strategy.Number(&s.Age, "pipe.age",
			"for how many epochs rows are not sent again where that is skipped",
			strategy.Whole{Unit: "EPOCHS", Default: 1}),
		strategy.Switch(&s.Shuffle, "pipe.shuffle",
			"whether each epoch takes the chunks in an order of its own"),
		strategy.Number(&s.Period, "pipe.period",
			"for how many epochs chunks see the same history of those that come later",
			strategy.Whole{Unit: "EPOCHS", Default: 23}), // as published
		strategy.Word(&s.Histories, "pipe.histories",
			"what histories are: made of the weights with which a period begins, or what the epoch before it has left, the first made, or zeros, as published; but for made, a job that is interrupted begins anew",
			Made, Left, Zeros),
		strategy.Word(&s.Gradients, "pipe.gradients",
			"what stands for gradients at histories, which come too late: nothing, or (kept) those of the last epoch, all of which then count once; a job that is interrupted begins anew then",
			dropped, kept),
		strategy.Switch(&s.Compensate, "pipe.compensate",
			"whether gradients at histories count twice, since half of them are lost"),
		strategy.Word(&s.Recompute, "pipe.recompute",
			"whether backward makes again what forward made, or that is kept, which takes more memory and less time; auto keeps it where there is room",
			strategy.Auto, strategy.On, strategy.Off),
		strategy.Word(&s.First, "pipe.first",
			"who multiplies features by a gcn's first weight where that makes them narrower: their owner, once, who sends the products in each epoch, or whoever reads them, to whom features travel once",
			owner, reader),
	}
}

// Trains returns a model in the stages in which a job trains it.
func (s *Settings) Trains(m *nn.Model) *nn.Model {
	if s.Halo == Exact && s.First == owner {
		return m.Split()
	}
	return m
}

// graphKeys are those that are of use without histories, the last one only there.
var graphKeys = []string{"pipe.ways", "pipe.halo", "pipe.share", "pipe.age", "pipe.first"}

// Of returns pipe's or graph's settings of a job, which have been checked.
func Of(job *strategy.Settings) Settings {
	s := Settings{Graph: job.Strategy == GraphName, Deterministic: job.Deterministic}
	_ = s.keys().Parse(job.Values)
	return s
}

// declaration is what pipe or graph declares of its settings. Only the keys are each one's
// own. The checks and same look at a job's strategy, and at the values of both: where a
// program has both, as all have, each check is made twice and comes to the same.
func declaration(name string) strategy.Declaration {
	return strategy.Declaration{
		Name: name, Learns: strategy.Learns{Classes: true},
		Sweepless: "keeps rows of all layers for one model only",
		Keys: func() strategy.Keys {
			keys := new(Settings).keys()
			keys = slices.DeleteFunc(keys, func(k strategy.Key) bool {
				return name == GraphName && !slices.Contains(graphKeys, k.Key)
			})
			return keys
		},
		CheckSettings: checkSettings,
		CheckNodes:    checkNodes,
		Measured:      true,
		Describe:      arrange.Describe,
		CheckShards:   checkShards,
		Same:          same,
	}
}

// wholeGraph reports whether a job trains the whole graph in each step, with rows that
// travel between layers.
func wholeGraph(job *strategy.Settings) bool {
	return job.Strategy == Name || job.Strategy == GraphName
}

func checkSettings(job *strategy.Settings) error {
	s := Of(job)
	_, share := job.Values["pipe.share"]
	_, age := job.Values["pipe.age"]
	switch {
	case wholeGraph(job) && job.Topology() == strategy.Replicated:
		return fmt.Errorf("topology=%s: with {strategy} %s a node has the edges of its part of the graph, and no others: leave it out, or take another {strategy}", strategy.Replicated, job.Strategy)
	case s.Stages > mostPipes || s.Ways > mostPipes:
		return fmt.Errorf("pipe.stages=%d, pipe.ways=%d: there are %d of each at most", s.Stages, s.Ways, mostPipes)
	case !wholeGraph(job):
		return nil
	case s.Chunks > 0 && s.Stages > s.Chunks:
		return fmt.Errorf("pipe.stages=%d, pipe.chunks=%d: with fewer chunks than stages some stages never have any to do: choose %d stages or fewer, or more chunks", s.Stages, s.Chunks, s.Chunks)
	case s.Chunks > 0 && s.Ways > s.Chunks:
		return fmt.Errorf("pipe.ways=%d, pipe.chunks=%d: each way has one chunk at least: choose %d ways or fewer, or more chunks", s.Ways, s.Chunks, s.Chunks)
	case share && s.Halo != Sampled:
		return fmt.Errorf("pipe.share=%d is for pipe.halo=%s: leave it out, or choose that", s.Share, Sampled)
	case age && s.Halo != Skip:
		return fmt.Errorf("pipe.age=%d is for pipe.halo=%s: leave it out, or choose that", s.Age, Skip)
	case !s.Graph && s.Halo != Exact && (s.Ways < 2 || s.Chunks != s.Ways):
		return fmt.Errorf("pipe.halo=%s: histories are made of rows of now, so this is for chunks that have none, one for each of several ways: set pipe.chunks and pipe.ways to the same number, or choose {strategy} %s, or %s", s.Halo, GraphName, Exact)
	case s.Graph && s.Deterministic && s.Ways < 1:
		return fmt.Errorf("{deterministic} promises the same bits on any number of nodes, and with {strategy} %s they depend on the ways, which are as many as nodes where nothing is said: choose {pipe.ways}=N", GraphName)
	}
	return nil
}

// checkNodes returns an error if a job can't begin on so many nodes. Ways of one stage
// may be more than nodes: each node then does several, as where nodes have left, and
// the result is the same.
func checkNodes(job *strategy.Settings, nodes int) error {
	s := Of(job)
	stages, ways := s.StagesOf(nodes, 1), s.WaysOf(nodes)
	if job.Strategy == Name && stages > 1 && stages*ways > nodes {
		return fmt.Errorf("%s of %s are work for %d nodes, and the dataset is on %d: choose fewer with {pipe.stages} and pipe.ways", recipe.Count(stages, "stage"), recipe.Count(ways, "way"), stages*ways, nodes)
	}
	return nil
}

func checkShards(job *strategy.Settings, shards int) error {
	if !wholeGraph(job) {
		return nil
	}
	s := Of(job)
	if chunks := max(s.Chunks, s.Ways); chunks > shards {
		return fmt.Errorf("the dataset has %d shards, which can't be %d chunks, nor as many ways: choose %d at most with {pipe.chunks} and pipe.ways, or import it with more {dataset.shards}", shards, chunks, shards)
	}
	if s.Chunks == 0 && s.Stages > shards {
		return fmt.Errorf("pipe.stages=%d: the dataset has %d shards, which are the chunks, and with fewer chunks than stages some stages never have any to do: choose %d stages or fewer, or import it with more {dataset.shards}", s.Stages, shards, shards)
	}
	return nil
}

// same reports whether two settings come to the same weights as far as histories and the
// rows that ways see of each other decide them. Stages only decide where layers are
// computed, and recomputing changes no bit.
func same(a, b *strategy.Settings) bool {
	if !wholeGraph(a) && !wholeGraph(b) {
		return true
	}
	x, y := Of(a), Of(b)
	x.Stages, x.Recompute = y.Stages, y.Recompute
	return x == y && a.Strategy == b.Strategy
}

// WaysOf returns how many ways a job has on so many nodes. If the nodes have yet to
// choose, it is the default.
func (s *Settings) WaysOf(nodes int) int {
	switch {
	case s.Ways > 0:
		return s.Ways
	case s.Graph:
		return nodes
	}
	return 1
}

// StagesOf returns how many stages there are at most, for a model of so many layers.
func (s *Settings) StagesOf(nodes, layers int) int {
	switch {
	case s.Graph:
		return 1
	case s.Stages > 0:
		return s.Stages
	}
	return min(layers, max(1, nodes/s.WaysOf(nodes)))
}

// ChunksOf returns how many chunks a graph of so many shards has.
func (s *Settings) ChunksOf(nodes, shards int) int {
	switch {
	case s.Graph:
		return s.WaysOf(nodes)
	case s.Chunks > 0:
		return s.Chunks
	}
	return shards
}

// Chained reports whether an epoch depends on rows or gradients of earlier epochs,
// which are in no checkpoint.
func (s *Settings) Chained() bool { return s.Histories != Made || s.Gradients == kept }

// Recomputes reports whether backward always computes again what forward computed.
func (s *Settings) Recomputes() bool { return !s.Graph && s.Recompute == strategy.On }

// MayRecompute reports whether each node decides by its own memory whether backward
// computes again what forward computed, which changes no result.
func (s *Settings) MayRecompute() bool { return !s.Graph && s.Recompute == strategy.Auto }
