package plan

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPlacingGoesOnWhateverHappens: nodes join, die, come back, go, change their
// weights and lose files, while shards are on their way. The table checks each
// word; whenever nodes stay as they are, it comes to rest.
func TestPlacingGoesOnWhateverHappens(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := newTable(t, 1+r.IntN(4), 1<<r.IntN(8), r.IntN(4))
		w.seed = r
		for range 40 {
			w.happen(r)
			w.place()
			if r.IntN(3) > 0 {
				w.fetch(r.Float64())
			}
			if r.IntN(4) == 0 {
				w.settle()
			}
		}
		w.settle()
	}
}

func (w *table) happen(r *rand.Rand) {
	ids := slices.Sorted(maps.Keys(w.nodes))
	id := ids[r.IntN(len(ids))]
	switch r.IntN(9) {
	case 0, 1:
		w.join(string(rune('a'+r.IntN(12))), 1+r.Uint64N(3))
	case 2:
		w.down(id)
	case 3, 4:
		w.up(id)
	case 5:
		if len(ids) > 1 {
			w.remove(id)
		}
	case 6:
		w.set(id, func(n *PlaceNode) { n.Weight = 1 + r.Uint64N(4) })
	case 7:
		w.set(id, func(n *PlaceNode) { n.Stays = r.IntN(2) == 0 })
	case 8:
		d := w.dataset()
		lost := r.IntN(len(d.Shards))
		delete(w.disk[id], lost)
		if w.serves(id) {
			w.apply(LoseShards{ID: datasetID, Node: id, Shards: []int{lost}})
		} else if d.Holds(id, lost) {
			w.disk[id][lost] = true
		}
	}
}

// TestRunsStayFew: one change after the other, each carried out before the next.
// No more shards change owner than have to, and neighbours stay together.
func TestRunsStayFew(t *testing.T) {
	var pieces, nodes int
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newTable(t, 2+r.IntN(4), 64, 1+r.IntN(2))
		w.seed = r
		w.settle()
		for range 25 {
			w.calmly(r)
			before := w.owners()
			least, most := w.needed()
			w.settle()
			if got := moves(before, w.owners()); got < least || got > most {
				t.Fatalf("seed %d: %d shards changed owner, %d to %d had to: %v, %s", seed, got, least, most, before, w)
			}
			pieces, nodes = pieces+runs(w.owners()), nodes+len(w.nodes)
		}
	}
	if pieces > 5*nodes/2 {
		t.Errorf("%d runs on %d nodes, all in all", pieces, nodes)
	}
}

func (w *table) calmly(r *rand.Rand) {
	ids := slices.Sorted(maps.Keys(w.nodes))
	id := ids[r.IntN(len(ids))]
	var down []string
	for _, id := range ids {
		if !w.serves(id) {
			down = append(down, id)
		}
	}
	switch k := r.IntN(4); {
	case len(down) > 0 && k < 2:
		w.up(down[0])
	case len(down) > 0:
		w.remove(down[0])
	case len(ids) < 3 || k == 0 && len(ids) < 9:
		w.join(string(rune('a'+w.index%20)), 1)
	default:
		w.down(id)
	}
}

// needed is how many shards have to change owner. At least those whose owner can't
// be one any more; at most, and if nobody died exactly, what others lack when
// somebody is far off what is due.
func (w *table) needed() (least, most int) {
	owned := map[string]int{}
	for _, id := range w.owners() {
		if w.owns(id) {
			owned[id]++
		} else {
			least++
		}
	}
	far := least > 0
	for id, quota := range w.quotas(len(w.dataset().Shards)) {
		most += max(0, quota-owned[id])
		far = far || off(owned[id], quota)
	}
	switch {
	case !far:
		return 0, 0
	case least == 0:
		return most, most
	}
	return least, most
}
