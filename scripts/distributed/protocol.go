package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// This file is the protocol: what is measured, with which settings, and the bars. It was fixed
// before anything was measured; the page says what was added since. The page repeats it in words.

const (
	batch       = 1024 // training vertices of a step, over all nodes
	rate        = 0.003
	epochs      = 4
	longer      = 40 // epochs of the part choice
	seed        = 1
	repetitions = 3 // by default
	cores       = 0.45
)

// bars are limits of ratios of times or of memory.
const (
	overDistMean  = 0.2 // leap's later epochs over DistDGL's, geometric mean
	overDistWorst = 0.3
	overDDPMean   = 0.4
	overDDPWorst  = 0.5
	overDistFirst = 0.6 // in the first epoch
	overDistBare  = 0.6 // without rows that are kept and without copies
	overBest      = 1.1 // auto over our best exact strategy
	overMemory    = 0.5 // all our processes over DistDGL's
)

// A data is a graph: one of a preset's shape, or else an R-MAT graph.
type data struct {
	name            string
	preset          string
	scale           float64
	vertices, edges uint64
	undirected      bool
}

var (
	products = data{name: "products 0.06", preset: "products", scale: 0.06}
	arxiv    = data{name: "arxiv 0.2", preset: "arxiv", scale: 0.2, undirected: true}
	reddit   = data{name: "reddit 0.05", preset: "reddit", scale: 0.05}
	rmat     = data{name: "R-MAT 2^15", vertices: 1 << 15, edges: 20 << 15}
)

const (
	rmatFeatures = 100
	rmatClasses  = 47
)

// dataset is the name of a graph's dataset with so many copies of each shard beside the owner's.
func dataset(copies int) string { return fmt.Sprint("copies", copies) }

func (g data) request(copies int) api.GenerateRequest {
	r := api.GenerateRequest{Name: dataset(copies), Preset: g.preset, Scale: g.scale, DatasetOptions: api.DatasetOptions{
		Replicas: &copies, Seed: seed, Undirected: g.undirected,
	}}
	if g.preset == "" { // as wide as the usual graph, with as many classes
		r.Kind, r.Vertices, r.Edges, r.Features, r.Classes = "rmat", g.vertices, g.edges, rmatFeatures, rmatClasses
	}
	return r
}

// A model is a GraphSAGE.
type model struct {
	layers, hidden int
	fanouts        []int // from the seed vertices outwards
}

func (m model) String() string { return fmt.Sprintf("%dx%d", m.layers, m.hidden) }

var (
	models = []model{{2, 16, []int{10, 10}}, {2, 128, []int{10, 10}}, {3, 16, []int{15, 10, 5}}, {3, 128, []int{15, 10, 5}}}
	ends   = []model{models[0], models[3]} // the models of all parts that vary one thing
)

// A setup is where both sides train: so many nodes, with links and shares of the processors.
type setup struct {
	data  data
	nodes int
	rate  uint64 // bits per second; shape.Free: not bounded
	cores float64
	// epochs are those of a job.
	epochs int
}

var usual = setup{products, 4, 400_000_000, cores, epochs}

func (s setup) link() shape.Link { return shape.Link{Rate: s.rate, Cores: s.cores} }

// bound describes the links.
func (s setup) bound() string {
	if s.rate == shape.Free {
		return "no bound"
	}
	return shape.FormatRate(s.rate)
}

func (s setup) String() string {
	text := fmt.Sprintf("%s, %d nodes, %s, %g cores", s.data.name, s.nodes, s.bound(), s.cores)
	if s.epochs != epochs {
		text += fmt.Sprintf(", %d epochs", s.epochs)
	}
	return text
}

// A side is one way to train.
type side struct {
	name string
	// Theirs: the framework and, for DistDGL, how the graph is cut.
	framework, cut string
	// Ours: the strategy, a setting, and copies beside the owner's.
	strategy string
	set      []api.Setting
	copies   int
	exact    bool // one machine's gradient, and not a choice among others
	other    bool // another algorithm, whose result differs
	loop     bool // only loops over batches
}

// Names of sides that bars compare.
const (
	byMETIS = "DistDGL, METIS"
	byOwn   = "DistDGL, our cut"
	byDDP   = "DGL + DDP"
	byLeap  = "leap"
	byAuto  = "auto"
	byP3    = "p3"
	byBare  = "leap, no cache, no copies"
)

var sides = []side{
	{name: byMETIS, framework: "distdgl", cut: "metis"},
	{name: byOwn, framework: "distdgl", cut: "own"},
	{name: byDDP, framework: "ddp"},
	{name: byLeap, strategy: "leap", copies: 1, exact: true},
	{name: byAuto, strategy: "auto", copies: 1},
	{name: "centric", strategy: "centric", copies: 1, exact: true},
	{name: byP3, strategy: "p3", copies: 1, exact: true},
	{name: "single", strategy: "single", copies: 1, exact: true},
	{name: "grappa", strategy: "grappa", copies: 1, other: true},
	{name: byBare, strategy: "leap", set: []api.Setting{{Key: "leap.cache", Value: "off"}}},
	{name: "leap, no copies", strategy: "leap"},
	{name: "leap, no cache", strategy: "leap", set: []api.Setting{{Key: "leap.cache", Value: "off"}}, copies: 1},
}

func sideOf(name string) side {
	i := slices.IndexFunc(sides, func(s side) bool { return s.name == name })
	return sides[i]
}

// A cell is what one row of the page is about.
type cell struct {
	part string
	setup
	model
	side side
}

// key names a cell in the file of runs.
func (c cell) key() string {
	return fmt.Sprintf("%s; %s; %s", c.setup, c.model, c.side.name)
}

// batch is how many seed vertices a step has, over all nodes.
func (c cell) batch() int {
	if c.side.loop {
		return loaderBatch
	}
	return batch
}

// settings are what a cell's name does not say. Runs with others are not taken.
func (c cell) settings() string {
	return fmt.Sprintf("batch %d, rate %g, epochs %d, seed %d, fan-outs %v, %d copies, set %v", c.batch(), rate, c.epochs, seed, c.fanouts, c.side.copies, c.side.set)
}

// at reports whether two cells differ in their side alone.
func (c cell) at(other cell) bool {
	return c.setup == other.setup && c.layers == other.layers && c.hidden == other.hidden
}

// parts are the parts of the list, each of which varies something.
var parts = []string{"headline", "strategies", "cut", "copies", "links", "nodes", "graphs", "choice"}

// cells returns the whole list, in the order of the page. A cell belongs to the first part that
// asks for it.
func cells() (list []cell) {
	add := func(part string, s setup, models []model, names ...string) {
		for _, m := range models {
			for _, name := range names {
				if side := sideOf(name); s.has(side) {
					list = append(list, cell{part, s, m, side})
				}
			}
		}
	}
	add("headline", usual, models, byMETIS, byDDP, byLeap)
	add("strategies", usual, models, byAuto, "centric", byP3, "grappa")
	add("cut", usual, models, byOwn)
	add("copies", usual, models, byBare)
	add("copies", usual, ends, "leap, no copies", "leap, no cache")
	all := []string{byMETIS, byDDP, byLeap, byAuto, "centric", byP3, "single"}
	for _, r := range []uint64{1_000_000_000, shape.Free} {
		s := usual
		s.rate = r
		add("links", s, ends, all...)
	}
	for _, n := range []int{1, 2, 8} {
		s := usual
		s.nodes = n
		if n == 8 {
			s.cores /= 2 // this much must fit on the machine
		}
		add("nodes", s, ends, all...)
	}
	for _, g := range []data{arxiv, reddit, rmat} {
		s := usual
		s.data = g
		add("graphs", s, ends, all...)
		if g == rmat {
			add("graphs", s, ends, "leap, no copies")
		}
	}
	for _, g := range []data{products, arxiv} {
		s := usual
		s.data, s.epochs = g, longer
		add("choice", s, ends[:1], byLeap, byAuto, "centric", byP3)
	}
	return list
}

// has reports whether a side can train in a setup: single needs a node that holds every shard, and
// what one node has to itself it trains by single alone.
func (s setup) has(side side) bool {
	switch {
	case s.nodes == 1:
		return side.strategy == "" || side.strategy == "single" || side.strategy == "auto"
	case side.strategy == "single":
		return side.copies+1 >= s.nodes
	}
	return true
}

// pick returns the cells of some parts and models, which are named between commas; "" or all: of
// each.
func pick(list []cell, only, of string) ([]cell, error) {
	var known []string
	for _, m := range models {
		known = append(known, m.String())
	}
	wanted, err := choose("part", only, parts)
	if err != nil {
		return nil, err
	}
	sizes, err := choose("model", of, known)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(list), func(c cell) bool {
		return !slices.Contains(wanted, c.part) || !slices.Contains(sizes, c.model.String())
	}), nil
}

func choose(what, names string, known []string) ([]string, error) {
	if names == "" || names == "all" {
		return known, nil
	}
	list := strings.Split(names, ",")
	for _, n := range list {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("there is no %s called %q: choose some of %s, or all", what, n, strings.Join(known, ", "))
		}
	}
	return list, nil
}

// request returns our job of a cell.
func (c cell) request() api.TrainRequest {
	none, size, count, learn, start := 0.0, batch, c.epochs, rate, uint64(seed)
	return api.TrainRequest{
		Dataset: dataset(min(c.side.copies, c.nodes-1)), Model: "sage", Layers: &c.layers, Hidden: &c.hidden, Dropout: &none, Norm: "none", Optimizer: "adam", Rate: &learn,
		WeightDecay: &none, Epochs: &count, Batch: &size, Fanout: c.fanouts, Features: "none", EvalEvery: &count, Seed: &start,
		Strategy: c.side.strategy, Set: c.side.set,
	}
}

// words is the protocol for whoever reads the page.
func words() []string {
	return []string{
		fmt.Sprintf("All sides train GraphSAGE with mean aggregation by Adam (learning rate %g), without dropout and weight decay, "+
			"with %d training vertices a step over all nodes. Models are written as layers x hidden width; fan-outs are 10,10 and 15,10,5. "+
			"The usual graph is `dataset generate --preset products --scale 0.06 --seed 1`. Those of arxiv and reddit are presets, too, at the scale that their name has, that of arxiv with mirrored edges. "+
			"Initial weights have the distribution of PyTorch's `Linear` on all sides. Each side trains %d epochs from seed %d.", rate, batch, epochs, seed),
		fmt.Sprintf("Each node is a network namespace with a link of the rate in the table and %g of a core, for eight nodes half of that. "+
			"The namespaces and the shares are the same for all sides. A link without a bound has a rate that this machine can't reach. Each run starts its own processes; sides take turns, and a repetition has all of them.", cores),
		"DistDGL is DGL 2.1.0 with PyTorch 2.2.1: a server and a trainer a node, no separate samplers, one thread. PyTorch's usual wheel has CUDA libraries, which are loaded and not used. Seed vertices are dealt by `node_split`, nearly all to the node that has them. " +
			"Its graph is cut by METIS, with training vertices and edges balanced, or as our shards lie. DGL + DDP has the whole graph on every rank and DGL's own sampler.",
		"Our shards have one copy beside their owner's, which is the default, unless a row says otherwise. All other settings are defaults: leap, centric and grappa keep rows of other nodes as far as memory has room (leap.cache=auto), unless a row says that there is no cache. grappa is another algorithm: its gradients are not those of one machine.",
		"Times are those of the slowest rank, without evaluation and set-up. *First epoch* is the median over repetitions, *second* that of second epochs, and *later epochs* the median of all epochs but the first over all repetitions. *All epochs* is the median of their sums. Ratios are of later epochs. " +
			"Nodes that keep rows of others fetch the rest of them at once, as a rule with the second epoch. " +
			"Bytes are sent by all nodes' interfaces in an epoch, and processor time is that of all processes: means of the epochs that are neither the first nor the last, and medians of these over repetitions. " +
			"Memory is the highest sum of all processes' proportional set sizes, read every half a second: of ours during the whole job with its evaluation, of theirs from their start to the end of the last epoch. " +
			"Accuracy is that on all test vertices after the last epoch, with all neighbours.",
		fmt.Sprintf("Added after the first results: the columns of the second and of all epochs; bars without a limit; p3, which auto's bar takes for one of our exact strategies, and whose memory has a line of its own, since with it the bar is missed; "+
			"the R-MAT graph (`dataset generate --kind rmat --vertices %d --edges %d --features %d --classes %d --seed %d`, whose equal edges are merged); "+
			"and the part choice, whose jobs have %d epochs. With %d epochs auto tries nothing and follows its formula. "+
			"The plot has leap's speed over that of single, and eight nodes with half the share each over one with the whole. "+
			"All graphs but R-MAT have planted communities. Amazon Computers and Coauthor CS are left out, since 20 training vertices of each class are one step an epoch. "+
			"Where ours were measured anew or added, theirs are those of before, and only ours took turns.", rmat.vertices, rmat.edges, rmatFeatures, rmatClasses, seed, longer, epochs),
	}
}
