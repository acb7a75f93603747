package train_test

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// An arenas is a device that tells of the largest arena that was asked for.
type arenas struct {
	tensor.Device
	reports func(bytes int)
}

func (d *arenas) NewArena(bytes int) (tensor.Arena, error) {
	d.reports(bytes)
	return d.Device.NewArena(bytes)
}

// Nodes on one machine share its memory: what each would find enough for itself is
// refused by all, before any has taken it, where it is too little for all.
func TestNodesOfOneMachineShareItsMemory(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	const free = 1 << 30
	for _, c := range []struct {
		name     string
		hidden   int
		machines []uint64
		bounds   []uint64
		want     string
	}{
		{"together", 4800, []uint64{7, 7, 8}, nil, "nodes n0 and n1 are on one machine, where the training needs 1."},
		{"apart", 100, []uint64{7, 8, 9}, nil, ""},
		{"unknown", 100, []uint64{0, 0, 0}, nil, ""},
		{"too much for one", 4800, []uint64{7, 8, 9}, []uint64{4 << 30, 300 << 20, 4 << 30}, "on node n1, the training needs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			most := make([]int, 3)
			errs := traintest.Ends(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				r.Model.Hidden, r.Model.Layers, r.Fanouts = c.hidden, 3, []int{2, 2, 2}
				o.Measure = func() budget.Memory { return budget.Memory{Machine: c.machines[node], Free: free, Resident: 50 << 20} }
				if c.bounds != nil {
					o.Memory = c.bounds[node]
				}
				o.Device = func(threads int) (tensor.Device, error) {
					return &arenas{cpu.New(threads), func(bytes int) { most[node] = max(most[node], bytes) }}, nil
				}
			})
			for node, err := range errs {
				if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !train.Together(err)) {
					t.Errorf("node %d: %v", node, err)
				}
				if err != nil && most[node] > 0 {
					t.Errorf("node %d has taken %d bytes", node, most[node])
				}
			}
		})
	}
}

// What to do about too little memory depends on what the recipe has too much of.
func TestTheAdviceForTooLittleMemory(t *testing.T) {
	for want, r := range map[string]recipe.Recipe{
		"take a smaller {batch}, {fanout} or {hidden}":                                      {Batch: 5, Fanouts: []int{5, 0}},
		"take a smaller {batch} or {hidden}":                                                {Batch: 5, Fanouts: []int{0, 0}},
		"take a smaller {fanout} or {hidden}, give a number for {batch}":                    {Fanouts: []int{5}},
		"take a smaller {hidden}, give numbers for {batch} and {fanout}":                    {},
		"take a smaller {hidden}, share the job among more nodes":                           {Sharing: strategy.Settings{Strategy: "graph"}},
		"leave out {pipe.recompute=off}, take a smaller {hidden}, share the job among more": {Sharing: strategy.Given("pipe", "pipe.recompute=off")},
		"give fewer values to {sweep}, which makes 3 models, take a smal":                   {Sweep: make([]recipe.Variant, 3)},
	} {
		err := budget.Enough(2<<20, 1<<20, (&train.Trainer{Recipe: r, Options: train.Options{Strategies: strategies.All}}).Smaller())
		if err == nil || !strings.Contains(err.Error(), "has 1.0 MiB: "+want) || !strings.HasSuffix(err.Error(), ", or allow more with {agent.memory}") {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
