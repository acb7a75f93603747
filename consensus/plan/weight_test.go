package plan

import (
	"maps"
	"slices"
	"testing"
)

// What is measured of equal machines differs by chance, and must move no shard; machines
// that do differ get their share.
func TestWeightsAreThoseOfClasses(t *testing.T) {
	for _, c := range []struct{ speeds, weights []uint64 }{
		{[]uint64{1000, 1000, 1000}, []uint64{1000, 1000, 1000}},
		{[]uint64{0, 1000, 1400}, []uint64{1000, 1000, 1000}}, // unknown is as the others
		{[]uint64{0, 0}, []uint64{OrdinarySpeed, OrdinarySpeed}},
		{[]uint64{0, 250}, []uint64{250, 250}},
		{[]uint64{8000, 250, 0, 8100}, []uint64{8000, 250, 8000, 8000}},
		{[]uint64{11900, 9000, 13400, 250}, []uint64{9000, 9000, 9000, 250}},               // GPUs beside a small node
		{[]uint64{1000, 2000, 4000}, []uint64{1000, 2000, 4000}},                           // twice the cores
		{[]uint64{1000, 1500, 2200}, []uint64{1000, 1500, 1500}},                           // 8, 12 and nearly 18 cores
		{[]uint64{1, 1, 2, 3}, []uint64{1, 1, 2, 3}},                                       // small numbers
		{[]uint64{maxNumber, maxNumber - 1, 1}, []uint64{maxNumber - 1, maxNumber - 1, 1}}, // as large as Apply takes
	} {
		s := &State{Members: map[string]Member{}}
		for i, speed := range c.speeds {
			id := string(rune('a' + i))
			s.Members[id] = Member{ID: id, Speed: speed}
		}
		weights := Weights(s)
		for i, want := range c.weights {
			if got := weights[string(rune('a'+i))]; got != want {
				t.Errorf("of %v, %d weighs %d, want %d", c.speeds, c.speeds[i], got, want)
			}
		}
	}
}

// Three equal nodes get 6, 5 and 5 of 16 shards, whatever was measured of them; a node of
// twice the speed gets twice as many.
func TestSharesFollowWeights(t *testing.T) {
	for _, c := range []struct {
		speeds []uint64
		shares []int
	}{
		{[]uint64{1000, 1000, 1000}, []int{5, 5, 6}},
		{[]uint64{12100, 9800, 14400}, []int{5, 5, 6}},
		{[]uint64{1000, 2000, 1000}, []int{4, 4, 8}},
		{[]uint64{9800, 12100, 19800}, []int{4, 4, 8}},
		{[]uint64{250, 0}, []int{8, 8}}, // a small node, and one like it that has just joined
	} {
		s := &State{Members: map[string]Member{}}
		for i, speed := range c.speeds {
			id := string(rune('a' + i))
			s.Members[id] = Member{ID: id, Speed: speed}
		}
		var nodes []PlaceNode
		for id, weight := range Weights(s) {
			nodes = append(nodes, PlaceNode{ID: id, Weight: weight, Stays: true, Serving: true})
		}
		d := Dataset{ID: "d", Stage: Placing, Importer: "a", Nodes: []string{"a"}, Shards: make([]Shard, 16)}
		for i := range d.Shards {
			d.Shards[i] = Shard{ShardAbout: ShardAbout{Bytes: 1}, Holders: []int{0}}
		}
		placed, changed := Place(d, nodes)
		if !changed {
			t.Fatalf("%v: nothing is placed", c.speeds)
		}
		count := map[string]int{}
		for _, wanted := range placed.Wanted {
			count[placed.Nodes[wanted[0]]]++
		}
		if got := slices.Sorted(maps.Values(count)); !slices.Equal(got, c.shares) {
			t.Errorf("nodes of speeds %v get %v shards, want %v", c.speeds, count, c.shares)
		}
	}
}
