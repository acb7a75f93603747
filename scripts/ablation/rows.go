package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// What all rows share: how a graph is cut, into how many groups, and how long each sees
// the same.
const (
	shards = 16
	groups = 4
	period = 5
)

// A subject is a graph with what is trained on it.
type subject struct {
	graph string
	title string
	cap   int // rows of a sampled halo: a fraction of what a group would have
	// plainRate is at which SGD learns: above it, it comes to nothing on one machine.
	plainRate float64
	recipe    train.Recipe
}

// subjects are the graphs. A batch is a quarter of the training vertices, so that a step
// has neighbours that are not all there is.
func subjects() (list []subject) {
	for _, g := range []struct {
		graph, title, features string
		batch, cap             int
		decay, plain           float64
	}{
		{"cora", "Cora", "row", 35, 40, 5e-4, 0.1},
		{"citeseer", "CiteSeer", "row", 30, 50, 5e-4, 0.1},
		{"amazon_photo", "Photo", "none", 1148, 300, 5e-5, 0.05},
		{"amazon_computers", "Computers", "none", 2063, 500, 5e-5, 0.05},
		{"coauthor_cs", "CS", "none", 2750, 500, 5e-5, 0.05},
	} {
		r := train.DefaultRecipe("sage")
		r.Model.Hidden, r.Features, r.Batch, r.Fanouts = 32, g.features, g.batch, []int{10, 10}
		r.Optimizer.WeightDecay, r.Epochs = g.decay, 100
		if g.features == "none" { // larger, and with rows of ones that add up to much
			r.Rate, r.Epochs, r.EvalEvery = 0.003, 50, 5
		}
		list = append(list, subject{g.graph, g.title, g.cap, g.plain, r})
	}
	return list
}

// A way is how a row's groups train.
type way struct {
	name    string // of loader, sweep and correction, or of the yardstick
	random  bool   // shards are of vertices at random, and not of communities
	plain   bool   // learnt by SGD, which does not hide by how much gradients are scaled
	nodes   int    // that share it; 0: one
	sharing strategy.Settings
}

// apart is a way by grappa.
func apart(name string, o strategy.GrappaSettings) way {
	o.Groups, o.Period = groups, period
	return way{name: name, sharing: strategy.Settings{Strategy: strategy.Grappa, Grappa: o}}
}

// ways are the lines of the table: one machine, then where vertices lie, which shards of
// others pass through, what groups see, and what makes up for the rest, with models that
// update themselves as a yardstick; and what makes up for the rest once more, by SGD.
func ways() []way {
	const off = "off"
	list := []way{{name: "one machine", sharing: strategy.Settings{Strategy: strategy.Single}}}
	add := func(random bool, name string, o strategy.GrappaSettings) {
		if random {
			name = "random " + name
		}
		w := apart(name, o)
		w.random = random
		list = append(list, w)
	}
	for _, random := range []bool{false, true} {
		for _, sweep := range []string{off, ""} {
			label := "swept"
			if sweep == off {
				label = "fixed"
			}
			for _, correction := range []string{strategy.CorrectNone, strategy.CorrectNode, strategy.CorrectBatch, strategy.CorrectSelf, strategy.CorrectMessage} {
				if correction == strategy.CorrectMessage && sweep == off {
					continue // what is never seen has no weight
				}
				add(random, fmt.Sprintf("strict %s %s", label, correction), strategy.GrappaSettings{Loader: strategy.Strict, Sweep: sweep, Correction: correction})
			}
			// The cap is the graph's.
			add(random, fmt.Sprintf("halo-sampled %s", label), strategy.GrappaSettings{Loader: strategy.HaloSampled, Sweep: sweep, Correction: strategy.CorrectNone})
			add(random, fmt.Sprintf("halo %s", label), strategy.GrappaSettings{Sweep: sweep, Correction: strategy.CorrectNone})
			add(random, fmt.Sprintf("halo %s batch of all hops", label), strategy.GrappaSettings{Sweep: sweep, Hops: "all"})
		}
		add(random, "strict swept as published batch", strategy.GrappaSettings{Loader: strategy.Strict, Sweep: strategy.SweepPublished})
		add(random, "halo of 2 hops fixed", strategy.GrappaSettings{Sweep: off, Depth: 2, Correction: strategy.CorrectNone})
		for _, every := range []int{2, 1 << 20} {
			name := fmt.Sprintf("strict fixed averaged every %d steps", every)
			if every > 2 {
				name = "strict fixed averaged every epoch"
			}
			add(random, name, strategy.GrappaSettings{Loader: strategy.Strict, Sweep: off, Correction: strategy.CorrectNone, Average: every})
			list[len(list)-1].nodes = groups
		}
	}
	single := list[0]
	single.name, single.plain = "one machine SGD", true
	list = append(list, single)
	for _, correction := range []string{strategy.CorrectNone, strategy.CorrectNode, strategy.CorrectBatch, strategy.CorrectSelf, strategy.CorrectMessage} {
		add(true, "strict swept "+correction+" SGD", strategy.GrappaSettings{Loader: strategy.Strict, Correction: correction})
		list[len(list)-1].plain = true
	}
	return list
}

// A row is a way on a graph.
type row struct {
	subject
	way
}

func (r row) id() string { return r.graph + "/" + r.name }

// whole is its recipe with how it is shared.
func (r row) whole() train.Recipe {
	w := r.recipe
	w.Sharing = r.sharing
	if g := &w.Sharing.Grappa; g.Loader == strategy.HaloSampled {
		g.Cap = r.cap
		if r.random {
			g.Cap *= 10 // there are about as many more to leave out
		}
	}
	if r.plain {
		w.Optimizer = nn.OptimizerSpec{Kind: "sgd", Momentum: 0.9, WeightDecay: w.Optimizer.WeightDecay}
		w.Rate = r.plainRate
	}
	return w
}

// isolated says whether groups train it.
func (w way) isolated() bool { return w.sharing.Strategy == strategy.Grappa }
