package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// Common to all rows: how a graph is partitioned, the default number of groups, how many
// shards of other groups pass through a group at a time, and the number of epochs.
const (
	shards = 16
	groups = 4
	swept  = 4
	period = 5
)

// way is how a row's groups train.
type way struct {
	name    string // of loader, sweep and correction, or of the baseline
	telling bool   // informative for large graphs, too
	random  bool   // shards hold random vertices instead of communities
	plain   bool   // trained by SGD, which, unlike Adam, shows wrongly scaled gradients
	nodes   int    // that share it; 0: one
	sharing strategy.Settings
}

// Names of ways that are looked up.
const (
	alone      = "one machine"
	scattered  = "random halo swept"
	aloneBySGD = "one machine SGD"
	full       = "halo swept"
	pair       = "halo swept in 2 groups"
	steady     = "halo swept in order"
	three      = "halo swept in order on 3 nodes"
)

// apart returns a way that trains by grappa.
func apart(name string, values ...string) way {
	all := []string{fmt.Sprint("grappa.groups=", groups), fmt.Sprint("grappa.period=", period)}
	if !slices.Contains(values, fixed) {
		all = append(all, fmt.Sprint("grappa.swept=", swept))
	}
	return way{name: name, sharing: strategy.Given(grappa.Name, append(all, values...)...)}
}

// Settings of several ways.
const (
	fixed   = "grappa.sweep=off"
	strict  = "grappa.loader=strict"
	ofBatch = "grappa.correction=batch"
)

// few returns the ways of the first table: one machine, halo and sweep in two and four groups,
// and in four where shards are random, which is where isolation hurts.
func few() []way {
	random := apart(scattered)
	random.random = true
	return []way{
		{name: alone, sharing: strategy.Settings{Strategy: strategy.Single}},
		apart(full),
		apart(pair, "grappa.groups=2"),
		random,
	}
}

// same returns ways that differ only in the number of nodes and must have the same
// weights.
func same() []way {
	one, many := apart(steady), apart(three)
	one.sharing.Deterministic, many.sharing.Deterministic, many.nodes = true, true, 3
	return []way{one, many}
}

// ways returns the lines of the second table. After one machine, they vary the placement
// of vertices, which shards of others pass through, what groups see, and how they correct
// for the rest. Models that update themselves are a baseline. The corrections are
// repeated with SGD.
func ways() []way {
	list := few()[:1]
	list[0].telling = true
	add := func(w way, random, telling bool) {
		if random {
			w.name = "random " + w.name
		}
		w.random, w.telling = random, telling
		list = append(list, w)
	}
	for _, random := range []bool{false, true} {
		for _, label := range []string{"fixed", "swept"} {
			sweep := "grappa.sweep=" // the default
			if label == "fixed" {
				sweep = fixed
			}
			for _, correction := range corrections {
				if correction == grappa.CorrectMessage && sweep == fixed {
					continue // data that is never seen has no weight
				}
				telling := correction == "" || !random && correction != grappa.CorrectBatch || correction == grappa.CorrectMessage
				add(apart(fmt.Sprintf("strict %s %s", label, named(correction)), strict, sweep, "grappa.correction="+correction), random, telling)
			}
			// The cap is the graph's.
			add(apart("halo-sampled "+label, "grappa.loader=halo-sampled", sweep), random, true)
			add(apart("halo "+label, sweep), random, true)
			add(apart(fmt.Sprintf("halo %s batch of all hops", label), sweep, ofBatch, "grappa.hops=all"), random, false)
		}
		add(apart("strict swept as published batch", strict, "grappa.sweep=published", ofBatch), random, false)
		add(apart("halo of 2 hops fixed", fixed, "grappa.depth=2"), random, false)
		for _, every := range []int{2, 1 << 20} {
			name := fmt.Sprintf("strict fixed averaged every %d steps", every)
			if every > 2 {
				name = "strict fixed averaged every epoch"
			}
			w := apart(name, strict, fixed, fmt.Sprint("grappa.average_every=", every))
			w.nodes = groups
			add(w, random, false)
		}
	}
	single := list[0]
	single.name, single.plain, single.telling = aloneBySGD, true, false
	list = append(list, single)
	for _, correction := range corrections {
		w := apart(fmt.Sprintf("strict swept %s SGD", named(correction)), strict, "grappa.correction="+correction)
		w.plain = true
		add(w, true, false)
	}
	return list
}

// corrections are the corrections to compare, after the default.
var corrections = []string{"", grappa.CorrectNode, grappa.CorrectBatch, grappa.CorrectSelf, grappa.CorrectMessage}

func named(correction string) string { return cmp.Or(correction, grappa.CorrectNone) }

// row is a way of training a model on a graph.
type row struct {
	subject
	shape
	way
	seeds  int
	epochs int // 0: as the protocol says
}

func (r row) id() string { return fmt.Sprintf("%s/%s/%s", r.graph, r.shape, r.name) }

// run returns the row as it is trained and kept.
func (r row) run() runs.Row {
	cut := build.Options{Shards: shards, Partitioner: "multilevel"}
	if r.random {
		cut.Partitioner = "random"
	}
	return runs.Row{Name: r.id(), Graph: r.graph, Cut: cut, Recipe: r.whole(), Seeds: r.seeds, Nodes: r.nodes}
}

// rows returns all rows, the most informative first: models by halo and sweep, then
// corrections on small graphs, then on large ones.
func rows() (list []row) {
	known := map[string]bool{}
	add := func(s subject, m shape, w way) {
		r := row{s, m, w, runs.Seeds, 0}
		if !known[r.id()] {
			list = append(list, r)
		}
		known[r.id()] = true
	}
	for _, layers := range []int{2, 4} {
		for _, s := range subjects() {
			for _, m := range shapes() {
				for _, w := range few() {
					if m.layers == layers && (layers == 2 || !s.slow) {
						add(s, m, w)
					}
				}
			}
		}
	}
	for _, w := range same() {
		add(subjects()[0], usual, w)
	}
	for _, large := range []bool{false, true} {
		for _, s := range subjects() {
			for _, w := range ways() {
				if s.large == large && !s.slow && (w.telling || !large) {
					add(s, usual, w)
				}
			}
		}
	}
	return list
}

// whole returns the recipe with the settings of sharing.
func (r row) whole() recipe.Recipe {
	w := r.recipe(r.shape)
	w.Sharing = r.sharing
	if grappa.Of(&w.Sharing).Loader == grappa.HaloSampled {
		rows := r.cap
		if r.random {
			rows *= 10 // there are about ten times as many to sample from
		}
		w.Sharing.Values = maps.Clone(w.Sharing.Values)
		w.Sharing.Values["grappa.cap"] = strconv.Itoa(rows)
	}
	if r.plain {
		w.Optimizer = nn.OptimizerSpec{Kind: "sgd", Momentum: 0.9, WeightDecay: w.Optimizer.WeightDecay}
		w.Rate = r.plainRate
		runs.Follow(&w, 3) // SGD is slower
	}
	if r.epochs > 0 {
		w.Epochs = r.epochs
	}
	return w
}
