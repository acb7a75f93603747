package arrange

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// All shards are in one chunk of one way, in their order.
func TestShapes(t *testing.T) {
	for shards := 1; shards < 12; shards++ {
		firsts := make([]uint32, shards+1)
		for i := range firsts {
			firsts[i] = uint32(3 * i)
		}
		for chunks := 1; chunks <= shards; chunks++ {
			for ways := 1; ways <= chunks; ways++ {
				s, err := NewShape(firsts, nil, ways, chunks)
				if err != nil {
					t.Fatal(err)
				}
				next, least, most := 0, shards, 0
				for way := range ways {
					first, end, shard, last := s.Of(way)
					if shard != next || first != firsts[shard] || end != firsts[last] {
						t.Fatalf("%d shards, %d chunks: way %d of %d has the shards %d to %d", shards, chunks, way, ways, shard, last)
					}
					n := 0
					for p := range s.Positions() {
						a, b := s.Shards(way, p)
						if a == b {
							continue
						}
						if a != next {
							t.Fatalf("position %d of way %d begins at shard %d, want %d", p, way, a, next)
						}
						for shard := a; shard < b; shard++ {
							if s.WayOf(shard) != way {
								t.Errorf("shard %d is of way %d, want %d", shard, s.WayOf(shard), way)
							}
						}
						next, n = b, n+1
					}
					least, most = min(least, n), max(most, n)
				}
				if next != shards || most-least > 1 || most != s.Positions() {
					t.Errorf("%d shards in %d chunks of %d ways: %d of them have a place, ways have %d to %d chunks", shards, chunks, ways, next, least, most)
				}
			}
		}
	}
	for _, bad := range []struct{ ways, chunks int }{{0, 1}, {3, 2}, {1, 5}} {
		if _, err := NewShape([]uint32{0, 1, 2, 3, 4}, nil, bad.ways, bad.chunks); err == nil {
			t.Errorf("4 shards are %d chunks of %d ways", bad.chunks, bad.ways)
		}
	}
}

func TestOrders(t *testing.T) {
	seen := map[string]bool{}
	for epoch := range 50 {
		order := Order(nil, 4, epoch, 5, true)
		if !slices.Equal(order, Order(make([]int, 9), 4, epoch, 5, true)) {
			t.Fatalf("epoch %d has two orders", epoch)
		}
		sorted := slices.Sorted(slices.Values(order))
		if !slices.Equal(sorted, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("epoch %d has the order %v", epoch, order)
		}
		seen[string(rune(order[0]*5+order[1]))] = true
		if plain := Order(nil, 4, epoch, 5, false); !slices.IsSorted(plain) {
			t.Errorf("without shuffling epoch %d has the order %v", epoch, plain)
		}
	}
	if len(seen) < 15 {
		t.Errorf("50 orders begin in %d ways", len(seen))
	}
	if slices.Equal(Order(nil, 4, 1, 9, true), Order(nil, 5, 1, 9, true)) {
		t.Error("two seeds have one order")
	}
}

func TestSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 200 {
		costs := make([]float64, 1+r.IntN(8))
		for i := range costs {
			costs[i] = float64(1 + r.IntN(9))
		}
		stages := 1 + r.IntN(len(costs))
		cuts := Split(costs, stages)
		if len(cuts) != stages+1 || cuts[0] != 0 || cuts[stages] != len(costs) {
			t.Fatalf("%v in %d stages: %v", costs, stages, cuts)
		}
		worst := 0.0
		for i := range stages {
			if cuts[i+1] <= cuts[i] {
				t.Fatalf("%v in %d stages: %v has an empty one", costs, stages, cuts)
			}
			worst = max(worst, sum(costs[cuts[i]:cuts[i+1]]))
		}
		if best := least(costs, stages); worst != best {
			t.Errorf("%v in %d stages: the slowest of %v costs %v, and %v would do", costs, stages, cuts, worst, best)
		}
	}
}

// Where one thing is dearer than all else, the rest is divided evenly all the same.
func TestSplitsOfTheRest(t *testing.T) {
	for stages, want := range map[int][]int{2: {0, 1, 9}, 3: {0, 1, 5, 9}, 5: {0, 1, 3, 5, 7, 9}} {
		if cuts := Split([]float64{99, 1, 1, 1, 1, 1, 1, 1, 1}, stages); !slices.Equal(cuts, want) {
			t.Errorf("in %d stages: %v, want %v", stages, cuts, want)
		}
	}
}

func sum(x []float64) (s float64) {
	for _, x := range x {
		s += x
	}
	return s
}

// least looks at all divisions.
func least(costs []float64, stages int) float64 {
	if stages == 1 {
		return sum(costs)
	}
	best := sum(costs)
	for i := 1; i <= len(costs)-stages+1; i++ {
		best = min(best, max(sum(costs[:i]), least(costs[i:], stages-1)))
	}
	return best
}

// An encoder goes with the first layer, and a head with the last.
func TestCuts(t *testing.T) {
	stages := func(s nn.Spec) []nn.StageInfo {
		m, err := nn.New(s, 5, 3)
		if err != nil {
			t.Fatal(err)
		}
		return m.Stages()
	}
	for _, c := range []struct {
		spec nn.Spec
		want []int
	}{
		{layered("gcnii", 4), []int{0, 2, 3, 4, 6}},
		{layered("resgcn", 3), []int{0, 2, 3, 5}},
		{layered("gcn", 3), []int{0, 1, 2, 3}},
	} {
		if got := Units(stages(c.spec)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("the units of a %s begin at %v, want %v", c.spec.Model, got, c.want)
		}
	}
	// 32 layers and what goes with them, in 8 stages: none has more than its share.
	cuts := Cut(stages(layered("gcnii", 32)), 8, 1000, 5000)
	for i := range 8 {
		if n := cuts[i+1] - cuts[i]; n < 3 || n > 5 {
			t.Errorf("stages begin at %v", cuts)
		}
	}
}

func TestSeats(t *testing.T) {
	none := func(int, int) uint64 { return 0 }
	s := NewSeats(3, 2, 7, none)
	seen := map[int]bool{}
	for stage := range 3 {
		for way := range 2 {
			seen[s.Node(stage, way)] = true
		}
		if len(s.Members(stage)) != 2 {
			t.Errorf("stage %d has the nodes %v", stage, s.Members(stage))
		}
	}
	if len(seen) != 6 {
		t.Errorf("6 seats are on %d nodes", len(seen))
	}
	if _, ways := s.Of(6); ways != nil {
		t.Errorf("the node that is over has the ways %v", ways)
	}
	// Nodes that are gone: fewer stages, then several ways on a node.
	if s := NewSeats(3, 2, 5, none); s.Stages != 2 {
		t.Errorf("5 nodes have %d stages of 2 ways", s.Stages)
	}
	few := NewSeats(3, 5, 2, none)
	stage, ways := few.Of(0)
	_, others := few.Of(1)
	if few.Stages != 1 || stage != 0 || !slices.Equal(append(ways, others...), []int{0, 1, 2, 3, 4}) || len(others) < 2 {
		t.Errorf("two nodes have the ways %v and %v", ways, others)
	}
	// Who has the features reads them.
	own := NewSeats(2, 2, 4, func(node, way int) uint64 { return uint64(node ^ way) })
	if own.Node(0, 0) != 3 || own.Node(0, 1) != 2 {
		t.Errorf("the first stage is on nodes %d and %d", own.Node(0, 0), own.Node(0, 1))
	}
}

// layered returns a narrow model of so many layers.
func layered(model string, layers int) nn.Spec {
	s := nn.Defaults(model)
	s.Layers, s.Hidden = layers, 4
	s.Resolve()
	return s
}
