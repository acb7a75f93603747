package train

import (
	"github.com/hopmesh/hopmesh/engine/strategy"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// An arenas is a device that tells of the largest arena that was asked for.
type arenas struct {
	tensor.Device
	told func(bytes int)
}

func (d *arenas) NewArena(bytes int) (tensor.Arena, error) {
	d.told(bytes)
	return d.Device.NewArena(bytes)
}

// Nodes on one machine share its memory: what each would find enough for itself is
// refused by all, before any has taken it, where it is too little for all.
func TestNodesOfOneMachineShareItsMemory(t *testing.T) {
	shards := communities(t, 1500)
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
			errs := ends(t, newMesh(3, uneven(len(shards), 3)), shards, func(node int, r *Recipe, _ []*graph.Shard, o *Options) {
				r.Model.Hidden, r.Model.Layers, r.Fanouts = c.hidden, 3, []int{2, 2, 2}
				o.memory = func() memory { return memory{Machine: c.machines[node], Free: free, Resident: 50 << 20} }
				if c.bounds != nil {
					o.Memory = c.bounds[node]
				}
				o.Device = func(threads int) (tensor.Device, error) {
					return &arenas{cpu.New(threads), func(bytes int) { most[node] = max(most[node], bytes) }}, nil
				}
			})
			for node, err := range errs {
				if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !Together(err)) {
					t.Errorf("node %d: %v", node, err)
				}
				if err != nil && most[node] > 0 {
					t.Errorf("node %d has taken %d bytes", node, most[node])
				}
			}
		})
	}
}

func TestWhatNodesTakeTogetherIsNoted(t *testing.T) {
	on := func(machine, needs, free uint64) means {
		return means{Needs: needs, Memory: memory{Machine: machine, Free: free}}
	}
	all := []means{on(3, 4<<30, 9<<30), on(4, 1, 2), on(3, 1<<30, 8<<30)}
	names := []string{"a", "b", "c"}
	if note, err := beside(all, 0, names, "take less"); err != nil || note != "nodes a and c are on one machine, where the training takes 5.0 GiB of memory for all of them, and 8.0 GiB are free" {
		t.Errorf("%q, %v", note, err)
	}
	all[0].Needs = 1 << 30 // which is little
	for node := range all {
		if note, err := beside(all, node, names, "take less"); err != nil || note != "" {
			t.Errorf("%d: %q, %v", node, note, err)
		}
	}
	all[2].Needs = 1<<64 - 1 // whatever a node says
	if _, err := beside(all, 0, names, "take less"); err == nil {
		t.Error("what is far too much is fine")
	}
}

// What a process holds is held once, whichever of its nodes tell of it.
func TestWhatAProcessHoldsCountsOnce(t *testing.T) {
	in := func(machine, process, needs, resident uint64) means {
		return means{Needs: needs, Memory: memory{Machine: machine, Process: process, Resident: resident}}
	}
	for _, c := range []struct {
		all  []means
		want uint64
	}{
		{[]means{in(7, 1, 100, 60), in(7, 1, 100, 60), in(7, 1, 100, 60)}, 240},
		{[]means{in(7, 1, 100, 60), in(7, 2, 100, 60), in(8, 1, 100, 60)}, 80},
		{[]means{in(7, 1, 100, 60), in(8, 3, 100, 60), in(7, 2, 30, 60), in(7, 1, 100, 60)}, 140},
		{[]means{in(7, 0, 100, 60), in(7, 0, 100, 60)}, 80}, // not known
		{[]means{in(7, 1, 1<<64-1, 0), in(7, 1, 1<<64-1, 0)}, 1 << 57},
	} {
		if got := missingOn(7, c.all); got != c.want {
			t.Errorf("%+v: %d, not %d", c.all, got, c.want)
		}
	}
}

// A node that speaks otherwise is named by all, whatever else it says of its memory.
func TestNodesOfAnotherVersionAreNamedFirst(t *testing.T) {
	for _, message := range [][]byte{nil, {1}, {wire + 1, 0, 0, 0}, make([]byte, 41)} {
		err := new(means).read(message)
		if err == nil || !Together(err) || !strings.Contains(err.Error(), "speaks of training in another version: run the same version of hopmesh on all nodes") {
			t.Errorf("%v: %v", message, err)
		}
	}
	if err := new(means).read([]byte{wire, 0, 0, 0}); err == nil || Together(err) {
		t.Errorf("what is too short: %v", err)
	}
}

// What to do about too little memory depends on what the recipe has too much of.
func TestTheAdviceForTooLittleMemory(t *testing.T) {
	for want, r := range map[string]Recipe{
		"take a smaller --batch, --fanout or --hidden":                                                          {Batch: 5, Fanouts: []int{5, 0}},
		"take a smaller --batch or --hidden":                                                                    {Batch: 5, Fanouts: []int{0, 0}},
		"take a smaller --fanout or --hidden, or a number for --batch":                                          {Fanouts: []int{5}},
		"take a smaller --hidden, or numbers for --batch and --fanout":                                          {},
		"take a smaller --hidden, share the job among more nodes, or allow more":                                {Sharing: strategy.Settings{Strategy: strategy.Graph}},
		"leave out --set pipe.recompute=off, take a smaller --hidden, share the job among more nodes, or allow": {Sharing: strategy.Settings{Strategy: strategy.Pipe, Pipe: strategy.PipeSettings{Keep: true}}},
		"give fewer values to --sweep, which makes 3 models, take a smal":                                       {Sweep: make([]Variant, 3)},
	} {
		err := lacking(1<<20, 2<<20, true, r.smaller())
		if err == nil || !strings.Contains(err.Error(), "has 1.0 MiB: "+want) || !strings.HasSuffix(err.Error(), ", or allow more with `hopmesh agent --memory`") {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
