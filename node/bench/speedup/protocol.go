// Package speedup measures how much faster several nodes are than one, behind links like those
// of a small office, with the settings that a job has by default. Beside each time stands the most
// that could come out: neighbours that seed vertices of different nodes share are computed on each
// of them.
package speedup

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// This file is the protocol. It was fixed before anything was measured.
//
//   - The graph has the shape of ogbn-products at 0.06: 146,942 vertices, 6.7 million edges, 100
//     features of four bytes, 11,755 training vertices, twelve steps an epoch. Each shard has one copy
//     beside its owner's, which is what an import makes by default.
//   - GraphSAGE of two and of three layers, hidden rows 16 and 128 wide, batches of 1024 over all
//     nodes, fan-outs 10,10 and 15,10,5, the seed 1. Nothing else is set: one node trains by single,
//     several by leap.
//   - Each node has 0.45 of a core, and a link of 400 Mbit/s both ways or one without a bound. Where
//     there are eight nodes, all sizes have 0.22 of a core, so that two cores are enough.
//   - Where features don't fit, nodes keep a quarter of all rows. One node has all it needs.
//   - grappa, of four groups, is beside itself on one node.
//   - An epoch's time is the median of the second to the fourth. The first brings rows that
//     are kept, and stands beside it.
//   - There are three rounds of everything, since a machine that is shared is faster at one time than
//     at another. A speedup is the median of the rounds', each beside its own time of one node.
//   - The ceiling of n nodes is n times the processor time of an epoch on one node, divided by that
//     of all n nodes when each holds every shard, so that no row travels. Processor time is what
//     the processes use in eight epochs more, on the first network, in all rounds together.

const (
	cores    = 0.45
	half     = 0.22
	rate     = 400_000_000
	batch    = 1024
	vertices = 146_942
	rounds   = 3
	warm     = 1
	timed    = 3
	more     = 8    // epochs whose processor time is measured
	share    = 0.85 // of the ceiling
	fourth   = 1.8  // of the smallest model on four nodes
	scarce   = 1.5  // of four nodes where features don't fit
)

// A model is one that is trained.
type model struct {
	layers, hidden int
	fanouts        []int
}

func (m model) String() string { return fmt.Sprintf("%d x %d", m.layers, m.hidden) }

var models = []model{{2, 16, []int{10, 10}}, {2, 128, []int{10, 10}}, {3, 16, []int{15, 10, 5}}, {3, 128, []int{15, 10, 5}}}

// A way is how several nodes train.
type way struct {
	name     string // "": as usual
	strategy string
	set      []string
	alone    bool // one node trains in this way, too
	ceiling  bool
	sizes    []int
}

var (
	usual  = way{strategy: "leap", ceiling: true, sizes: []int{1, 2, 4}}
	eight  = way{strategy: "leap", sizes: []int{1, 2, 4, 8}}
	little = way{name: "a quarter of the rows kept", strategy: "leap", set: []string{fmt.Sprintf("leap.cache=%d", vertices/4)}, sizes: []int{4}}
	apart  = way{name: "grappa", strategy: "grappa", set: []string{"grappa.groups=4"}, alone: true, ceiling: true, sizes: []int{1, 4}}
)

// A network is what joins the nodes, and what is trained there.
type network struct {
	name   string
	rate   uint64
	cores  float64
	ways   []way
	models []model
}

var networks = []network{
	{"400 Mbit/s", rate, cores, []way{usual, little, apart}, models},
	{"no bound", 0, cores, []way{usual}, models},
	{"400 Mbit/s, 0.22 of a core", rate, half, []way{eight}, []model{models[0], models[3]}},
}

func (n network) link() shape.Link { return shape.Link{Rate: n.rate, Cores: n.cores} }

// graph is the dataset; copies beside the owner's.
func graph(name string, copies int, quick bool) api.GenerateRequest {
	scale := 0.06
	if quick {
		scale = 0.006
	}
	return api.GenerateRequest{Name: name, Preset: "products", Scale: scale, DatasetOptions: api.DatasetOptions{Replicas: &copies, Seed: 1}}
}

// ask returns a job of so many epochs, evaluated after the last alone.
func (w way) ask(m model, dataset string, nodes, epochs int) api.TrainRequest {
	seed, size := uint64(1), batch
	r := api.TrainRequest{
		Dataset: dataset, Model: "sage", Layers: &m.layers, Hidden: &m.hidden, Fanout: m.fanouts, Batch: &size, Epochs: &epochs, EvalEvery: &epochs,
		Seed: &seed, Strategy: w.strategy,
	}
	if nodes == 1 && !w.alone {
		r.Strategy = "single"
		return r
	}
	for _, s := range w.set {
		key, value, _ := strings.Cut(s, "=")
		r.Set = append(r.Set, api.Setting{Key: key, Value: value})
	}
	return r
}
