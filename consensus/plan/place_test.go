package plan

import (
	"slices"
	"testing"
)

func (w *table) want(text string) {
	w.t.Helper()
	if got := w.String(); got != text {
		w.t.Errorf("owners are %s, not %s", got, text)
	}
}

func TestFirstPlacementIsRuns(t *testing.T) {
	w := newTable(t, 3, 64, 1)
	w.settle()
	w.want("a22 b21 c21")
	if d := w.dataset(); d.Stage != Ready || d.Lacks(w.serves) != (Lacks{}) {
		t.Errorf("it is %s and lacks %+v", d.Stage, d.Lacks(w.serves))
	}
	// The importer's run is the first, whatever its id.
	other := newTable(t, 3, 4, 0)
	other.apply(RemoveDataset{ID: datasetID})
	other.apply(ReserveDataset{ID: datasetID, Name: "graph", Importer: "c"})
	other.apply(defined(datasetID, "c", 64))
	for i := range 64 {
		other.disk["c"][i] = true
	}
	other.settle()
	other.want("c22 a21 b21")
}

func TestOneNodeHasEverything(t *testing.T) {
	w := newTable(t, 1, 8, 1)
	if w.dataset().Stage != Placing || !w.place() || w.dataset().Stage != Ready || w.place() {
		t.Errorf("%+v", w.dataset())
	}
	if l := w.dataset().Lacks(w.serves); l != (Lacks{Thin: 8}) {
		t.Errorf("%+v", l)
	}
}

func TestShardsGoByWeightAndRoom(t *testing.T) {
	for _, test := range []struct {
		a, b PlaceNode
		want string
	}{
		{PlaceNode{Weight: 2000}, PlaceNode{Weight: 1000}, "a40 b20"},
		{PlaceNode{Weight: 1000}, PlaceNode{Weight: 2000}, "a20 b40"},
		{PlaceNode{Weight: 1 << 63}, PlaceNode{Weight: 1 << 62}, "a30 b30"}, // beyond what can be told apart
		{PlaceNode{Weight: 1, Capacity: 1050}, PlaceNode{Weight: 1}, "a10 b50"},
		{PlaceNode{Weight: 1}, PlaceNode{Weight: 3, Capacity: 1999}, "a41 b19"},
		{PlaceNode{Weight: 1, Capacity: 4000}, PlaceNode{Weight: 1, Capacity: 2000}, "a40 b20"},
		{PlaceNode{Weight: 1, Capacity: 2000}, PlaceNode{Weight: 1, Capacity: 1000}, "a35 b25"}, // too little for all
	} {
		w := newTable(t, 2, 60, 1)
		for id, n := range map[string]PlaceNode{"a": test.a, "b": test.b} {
			w.set(id, func(p *PlaceNode) { p.Weight, p.Capacity = n.Weight, n.Capacity })
		}
		for w.place() {
			w.fetch(1)
		}
		w.want(test.want)
	}
}

func TestNobodyIsLeftWithNothing(t *testing.T) {
	w := newTable(t, 2, 4, 0)
	w.settle()
	w.want("a2 b2")
	w.join("c", 1)
	w.join("d", 1)
	w.settle()
	if runs(w.owners()) != 4 {
		t.Errorf("owners are %s", w)
	}
}

func TestNobodyOwnsMoreThanFits(t *testing.T) {
	w := newTable(t, 2, 60, 1)
	w.settle()
	w.set("a", func(n *PlaceNode) { n.Capacity = 2999 })
	w.settle()
	w.want("a29 b31")
}

// TestCopiesOnNodesThatServe: a is down when c joins and takes shards over.
func TestCopiesOnNodesThatServe(t *testing.T) {
	w := newTable(t, 2, 64, 1)
	w.settle()
	w.down("a")
	w.join("c", 1)
	w.settle()
	d := w.dataset()
	for i := range d.Shards {
		if d.Owner(i) == "c" && !d.Holds("b", i) {
			t.Errorf("shard %d is on %v", i, d.HoldersOf(i))
		}
	}
}

func TestSmallChangesOfWeightMoveNothing(t *testing.T) {
	w := newTable(t, 3, 64, 1)
	for _, id := range []string{"a", "b", "c"} {
		w.set(id, func(n *PlaceNode) { n.Weight = 1000 })
	}
	w.settle()
	for _, weight := range []uint64{1050, 950, 1100} {
		w.set("a", func(n *PlaceNode) { n.Weight = weight })
		if w.place() {
			t.Errorf("a weight of %d moves shards", weight)
		}
	}
	w.set("a", func(n *PlaceNode) { n.Weight = 2000 })
	w.settle()
	w.want("a27 b16 c16 a5")
}

// TestAsFewMovesAsCanBe: the optimum is counted by hand.
func TestAsFewMovesAsCanBe(t *testing.T) {
	w := newTable(t, 2, 64, 1)
	step := func(want, pieces int) {
		t.Helper()
		before := w.owners()
		w.settle()
		if got := moves(before, w.owners()); got != want {
			t.Errorf("%d shards changed owner, %d had to: %s", got, want, w)
		}
		if got := runs(w.owners()); got > pieces {
			t.Errorf("%d runs, %d would do: %s", got, pieces, w)
		}
	}
	step(32, 2)
	w.join("c", 1)
	w.join("d", 1)
	step(32, 4) // 16 from each
	four := w.owners()
	w.down("d")
	step(16, 6) // a piece of its run to each
	w.up("d")
	step(16, 4)
	if !slices.Equal(w.owners(), four) {
		t.Errorf("d is back, but not all that was its: %s", w)
	}
	w.remove("d")
	step(0, 6) // its shards' other holders are their owners now
	w.remove("c")
	step(0, 8)
}

// TestJoinsLeaveFewRuns: who joins n others takes a little of each, and so has half
// as many runs at least.
func TestJoinsLeaveFewRuns(t *testing.T) {
	w := newTable(t, 1, 64, 1)
	w.settle()
	for n, most := range []int{2, 4, 6, 9, 12, 16, 20} {
		w.join(string(rune('b'+n)), 1)
		w.settle()
		if got := runs(w.owners()); got > most {
			t.Errorf("%d nodes have %d runs, not %d: %s", n+2, got, most, w)
		}
	}
}

func TestADeadOwnersShardsAreServedAtOnce(t *testing.T) {
	w := newTable(t, 3, 64, 1)
	w.settle()
	w.down("b")
	if l := w.dataset().Lacks(w.serves); l != (Lacks{Waiting: 21, Thin: 21}) {
		t.Errorf("before: %+v", l)
	}
	generation := w.state.Generation
	if !w.place() || w.state.Generation == generation {
		t.Error("nothing new")
	}
	d := w.dataset()
	for i := range d.Shards {
		if !w.serves(d.Owner(i)) || !d.Holds(d.Owner(i), i) {
			t.Errorf("shard %d is %s's", i, d.Owner(i))
		}
	}
	if w.fetch(1) || w.place() { // b will be back with its copies: nothing is copied
		t.Errorf("%+v", d)
	}
	w.up("b")
	w.settle()
	w.want("a22 b21 c21")
}

// TestTheDeadsShardsGoToHoldersFirst: x dies; copies of half of its shards are
// with a, of the others with b. c gets two of them, to even out, and only those
// have to be fetched.
func TestTheDeadsShardsGoToHoldersFirst(t *testing.T) {
	d := Dataset{ID: datasetID, Stage: Ready, Nodes: []string{"a", "b", "c", "x"}}
	for i := range 32 {
		owner := []int{0, 1, 3, 2}[i/8]
		s := Shard{Holders: []int{owner, (owner + 1) % 3}}
		if owner == 3 {
			s.Holders[1] = i / 20 // a, then b
		}
		d.Shards = append(d.Shards, s)
	}
	d.Replicas = 1
	up := func(id string, serves bool) PlaceNode { return PlaceNode{ID: id, Serving: serves, Stays: true} }
	c, _ := Place(d, []PlaceNode{up("a", true), up("b", true), up("c", true), up("x", false)})
	fetched := 0
	for i, row := range c.Wanted {
		if !d.Holds(c.Nodes[row[0]], i) {
			fetched++
		}
	}
	if fetched != 2 {
		t.Errorf("%d shards go to a node that has to fetch them: %v", fetched, c.Wanted)
	}
}

func TestWhatNobodyServesWaits(t *testing.T) {
	w := newTable(t, 4, 64, 1)
	w.settle()
	var gone []int
	for i, d := 0, w.dataset(); i < 64; i++ {
		if !slices.ContainsFunc(d.HoldersOf(i), func(id string) bool { return id == "a" || id == "c" }) {
			gone = append(gone, i)
		}
	}
	before := w.dataset()
	w.down("b")
	w.down("d")
	w.settle()
	d := w.dataset()
	if len(gone) == 0 || d.Lacks(w.serves).Unserved != len(gone) {
		t.Fatalf("%d shards were on the two only: %+v", len(gone), d.Lacks(w.serves))
	}
	for _, i := range gone {
		if !slices.Equal(d.HoldersOf(i), before.HoldersOf(i)) || !slices.Equal(d.WantedOf(i), before.WantedOf(i)) {
			t.Errorf("shard %d is on %v, wanted on %v", i, d.HoldersOf(i), d.WantedOf(i))
		}
	}
	w.up("d")
	w.settle()
	if l := w.dataset().Lacks(w.serves); l.Unserved != 0 || l.Waiting != 0 {
		t.Errorf("one of the two is back: %+v", l)
	}
	// Lost for good with all their copies, and back after all with the files.
	w.remove("b")
	w.remove("d")
	w.settle()
	if l := w.dataset().Lacks(w.serves); l.Unserved == 0 {
		t.Fatalf("%+v", l)
	}
	w.join("b", 1)
	w.settle()
	if l := w.dataset().Lacks(w.serves); l != (Lacks{}) {
		t.Errorf("b is back: %+v", l)
	}
}

func TestWhoLeavesGivesItsShardsFirst(t *testing.T) {
	w := newTable(t, 3, 64, 0)
	w.settle()
	w.set("b", func(n *PlaceNode) { n.Stays = false })
	if !w.place() || w.state.ShardsOwned("b") != 21 {
		t.Errorf("b owns %d shards that nobody else holds yet", w.state.ShardsOwned("b"))
	}
	w.settle()
	if w.state.ShardsOwned("b") != 0 || slices.Contains(w.dataset().Nodes, "b") {
		t.Errorf("b still has a part: %s", w)
	}
	w.want("a32 c32")
}

// TestADeathBurdensAllAlike: copies of each node's shards are on all others.
func TestADeathBurdensAllAlike(t *testing.T) {
	w := newTable(t, 5, 60, 1)
	w.settle()
	w.down("c")
	w.settle()
	w.want("a12 b15 d4 e3 a2 d12 e12")
}

func TestNothingToPlace(t *testing.T) {
	w := newTable(t, 2, 8, 1)
	if c, ok := Place(Dataset{Stage: Importing}, w.list()); ok {
		t.Errorf("an import: %+v", c)
	}
	w.settle()
	w.down("a")
	w.down("b")
	if w.place() {
		t.Error("nobody serves, yet something changes")
	}
	if c, ok := Place(w.dataset(), nil); ok {
		t.Errorf("without nodes: %+v", c)
	}
}
