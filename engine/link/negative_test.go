package link

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// negativesOf returns the negatives of each pair of a step, as those who compute some of its
// sources see them.
func negativesOf(p *Pairs, places []uint32, epoch, parts int) map[Pair][]uint32 {
	var b Batch
	b.Begin(p, places, epoch, nil)
	all := map[Pair][]uint32{}
	for some := range slices.Chunk(b.Sources(), (len(b.Sources())+parts-1)/parts) {
		ends, words := b.Ends(nil, nil, some)
		var of Pair
		for ; len(words) > 0; words = words[WordsOfPair:] {
			if words[2] == 1 {
				of = Pair{Source: ends[words[0]], Target: ends[words[1]]}
				continue
			}
			all[of] = append(all[of], ends[words[1]])
		}
	}
	return all
}

// Wherever negatives come from, they are no edges that training may see, the same whoever computes
// the pair, and others in each epoch. Those of a source are common to its pairs, and those in a
// batch are targets of the step.
func TestWhereNegativesComeFrom(t *testing.T) {
	for _, from := range Froms {
		s := *Default()
		s.From, s.Negatives = from, 5
		p, whole := pairsOf(t, &s, 3)
		known := edges(whole)
		places := make([]uint32, 300)
		targets := map[uint32]bool{}
		for i := range places {
			places[i] = uint32(7 * i)
			targets[p.Of[graph.Train][7*i].Target] = true
		}
		got := negativesOf(p, places, 4, 1)
		for pair, vs := range negativesOf(p, places, 4, 7) {
			if !slices.Equal(vs, got[pair]) {
				t.Fatalf("%s: %v has the negatives %v, and %v where others compute some", from, pair, got[pair], vs)
			}
		}
		if len(got) != len(places) {
			t.Fatalf("%s: %d pairs", from, len(got))
		}
		bySource, shared, alone, among, same := map[uint32][]uint32{}, 0, 0, 0, 0
		later := negativesOf(p, places, 5, 1)
		for pair, vs := range got {
			if len(vs) != 5 {
				t.Fatalf("%s: %v has %d negatives", from, pair, len(vs))
			}
			for _, v := range vs {
				edge := known[Pair{Source: pair.Source, Target: v}] || known[Pair{Source: v, Target: pair.Source}]
				if v == pair.Source || edge && !p.Hidden(pair.Source, v, 0) {
					t.Errorf("%s: %v has the negative %d", from, pair, v)
				}
				if targets[v] {
					among++
				}
			}
			if slices.Equal(vs, later[pair]) {
				same++
			}
			if before, seen := bySource[pair.Source]; seen {
				if slices.Equal(before, vs) {
					shared++
				} else {
					alone++
				}
			}
			bySource[pair.Source] = vs
		}
		if same > 0 {
			t.Errorf("%s: %d pairs have the same negatives in two epochs", from, same)
		}
		if shared+alone == 0 || (from == PerSource) != (alone == 0) || (from == PerSource) != (shared > 0) {
			t.Errorf("%s: negatives are shared by %d pairs of a source, and by %d not", from, shared, alone)
		}
		if all := 5 * len(places); (from == InBatch) != (among == all) {
			t.Errorf("%s: %d of %d negatives are targets of the step", from, among, all)
		}
	}
}

// A step of one pair has no other target, so that any vertex is taken.
func TestAStepOfOnePairHasNegatives(t *testing.T) {
	s := *Default()
	s.From = InBatch
	p, _ := pairsOf(t, &s, 3)
	for pair, vs := range negativesOf(p, []uint32{5}, 1, 1) {
		if len(vs) != 1 || vs[0] == pair.Target || vs[0] == pair.Source {
			t.Errorf("%v has the negatives %v", pair, vs)
		}
	}
}
