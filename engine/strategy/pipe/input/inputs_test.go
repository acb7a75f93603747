package input

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

const (
	grains = 40
	each   = 50
	width  = 3
)

// A counter is a device that keeps its arenas.
type counter struct {
	tensor.Device
	arenas []tensor.Arena
}

func (c *counter) NewArena(bytes int) (tensor.Arena, error) {
	a, err := c.Device.NewArena(bytes)
	c.arenas = append(c.arenas, a)
	return a, err
}

// opened returns a device and a graph of which vertex v has v, v+1 and v+2 for features.
func opened(t *testing.T) (*counter, *dataset.Graph) {
	t.Helper()
	s := &graph.Shard{Shards: 1, Vertices: grains * each, Total: grains * each, Features: width, Indptr: make([]int64, grains*each+1)}
	for v := range grains * each {
		s.Dense = append(s.Dense, float32(v), float32(v+1), float32(v+2))
	}
	store, err := features.Open([]*graph.Shard{s}, "none")
	if err != nil {
		t.Fatal(err)
	}
	d := cpu.New(1)
	t.Cleanup(d.Close)
	return &counter{Device: d}, &dataset.Graph{Features: store, Shards: []*graph.Shard{s}}
}

func vertices(grain int) (list []uint32) {
	for i := range uint32(each - grain%7) {
		list = append(list, uint32(grain*each)+i)
	}
	return list
}

func check(t *testing.T, in nn.Input, err error, grain int) {
	t.Helper()
	want := vertices(grain)
	if err != nil || in.Dense.Rows != len(want) || in.Dense.Cols != width || !slices.Equal(in.Vertices, want) {
		t.Fatalf("grain %d: %d rows of %d columns, %v", grain, in.Dense.Rows, in.Dense.Cols, err)
	}
	for row, v := range want {
		for column := range width {
			if got := in.Dense.F32()[row*in.Dense.Stride+column]; got != float32(int(v)+column) {
				t.Fatalf("grain %d: vertex %d has %v in column %d", grain, v, got, column)
			}
		}
	}
}

// All places together take what Bytes says, and not a slab each.
func TestPlacesShareAnArena(t *testing.T) {
	var all [][]uint32
	for g := range grains {
		all = append(all, vertices(g))
	}
	for _, one := range []bool{false, true} {
		d, data := opened(t)
		r := NewReads(data, d)
		r.Plan(all, grains, one)
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		inputs := make([]nn.Input, grains)
		for g := range grains {
			var err error
			inputs[g], err = r.Input(g, g, all[g])
			check(t, inputs[g], err, g)
		}
		for g := range inputs {
			if !one { // the others have not touched it
				check(t, inputs[g], nil, g)
			}
		}
		held := 0
		for _, a := range d.arenas {
			held += a.Bytes()
		}
		const slab = 2 << 20
		if least := uint64(grains * each * width * 4); !one && r.Bytes() < least {
			t.Errorf("places take %d bytes, and rows alone %d", r.Bytes(), least)
		}
		if uint64(held) > (r.Bytes()+slab-1)/slab*slab {
			t.Errorf("one place %v: arenas hold %d bytes, of %d that were forecast", one, held, r.Bytes())
		}
		r.Close()
	}
}

// Features that stand in for others fill one place with grains of any size.
func TestStandIns(t *testing.T) {
	d, data := opened(t)
	i := NewStandIns(data, d)
	i.PlanOne()
	if err := i.Open(); err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for _, g := range []int{6, 0, 3} {
		in, err := i.Input(0, g, vertices(g))
		check(t, in, err, g)
	}
}
