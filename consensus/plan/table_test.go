package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// table is a mesh with one dataset and what its leader knows of the nodes. It
// checks every word of Place and of the plan.
type table struct {
	t     testing.TB
	state *State
	index uint64
	nodes map[string]PlaceNode
	disk  map[string]map[int]bool // which shards' files a node has
	seed  *rand.Rand
}

const (
	datasetID = "00000000000000d5"
	hash      = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// newTable has nodes called a, b, c..., of weight 1; a has imported the dataset.
func newTable(t testing.TB, nodes, shards, replicas int) *table {
	w := &table{t: t, state: founded(t), index: 1, nodes: map[string]PlaceNode{}, disk: map[string]map[int]bool{}, seed: rand.New(rand.NewPCG(1, uint64(nodes)))}
	for i := range nodes {
		w.join(string(rune('a'+i)), 1)
	}
	w.apply(ReserveDataset{ID: datasetID, Name: "graph", Importer: "a", Replicas: replicas})
	w.apply(defined(datasetID, "a", shards))
	for i := range shards {
		w.disk["a"][i] = true
	}
	return w
}

// defined is the definition of a dataset with so many shards of 100 bytes.
func defined(id, importer string, shards int) DefineDataset {
	c := DefineDataset{ID: id, Importer: importer, About: About{
		Vertices: uint64(10 * shards), Edges: uint64(20 * shards), Features: 3, Classes: 2, DType: "f32", Partitioner: "random",
		EdgeCut: 7, Balance: 1.02, Splits: []SplitSizes{{Train: 5, Val: 2, Test: 3}},
	}}
	for i := range shards {
		c.Shards = append(c.Shards, ShardAbout{Vertices: 10, Edges: 20, Halo: uint64(i), Bytes: 100, SHA256: hash})
	}
	return c
}

func (w *table) apply(c Command) {
	w.t.Helper()
	w.index++
	was, before := w.state, w.state.Digest()
	w.state = must(w.t, was, w.index, c)
	if was.Digest() != before {
		w.t.Fatalf("%T changed the state that it was given", c)
	}
	if err := w.state.check(); err != nil {
		w.t.Fatalf("after %T: %v", c, err)
	}
}

func (w *table) join(id string, weight uint64) {
	if _, in := w.state.Members[id]; !in {
		w.apply(AddMember{Member: Member{ID: id, Name: id, PublicKey: "k" + id}})
	}
	w.nodes[id] = PlaceNode{ID: id, Weight: weight, Serving: true, Stays: true}
	if w.disk[id] == nil {
		w.disk[id] = map[int]bool{}
	}
}

func (w *table) set(id string, change func(n *PlaceNode)) {
	n := w.nodes[id]
	change(&n)
	w.nodes[id] = n
}

func (w *table) down(id string) { w.set(id, func(n *PlaceNode) { n.Serving = false }) }
func (w *table) up(id string)   { w.set(id, func(n *PlaceNode) { n.Serving = true }) }
func (w *table) remove(id string) {
	w.apply(RemoveMember{ID: id, Why: Removed})
	delete(w.nodes, id)
}

func (w *table) dataset() Dataset { return w.state.Datasets[datasetID] }

// list is the nodes in any order.
func (w *table) list() []PlaceNode {
	var list []PlaceNode
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		list = append(list, w.nodes[id])
	}
	w.seed.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (w *table) serves(id string) bool { return w.nodes[id].Serving }
func (w *table) owns(id string) bool   { return w.nodes[id].Serving && w.nodes[id].Stays }

// place asks Place once and carries its word to the plan.
func (w *table) place() bool {
	w.t.Helper()
	d := w.dataset()
	before := w.state.Digest()
	c, ok := Place(d, w.list())
	again, okAgain := Place(d, w.list())
	if ok != okAgain || !reflect.DeepEqual(c, again) {
		w.t.Fatalf("Place says %v %v, then %v %v", c, ok, again, okAgain)
	}
	if w.state.Digest() != before {
		w.t.Fatal("Place changed the state it was given")
	}
	if !ok {
		w.checkOwners()
		return false
	}
	w.checkWord(d, c)
	w.apply(c)
	if c, again := Place(w.dataset(), w.list()); again && reflect.DeepEqual(c.Wanted, wanted(w.dataset())) && w.dataset().Stage == Ready {
		w.t.Fatal("Place says that something changes, and nothing does")
	}
	w.checkOwners()
	return true
}

func wanted(d Dataset) [][]int {
	rows := make([][]int, len(d.Shards))
	for i := range d.Shards {
		rows[i] = d.wanted(i)
	}
	return rows
}

// checkWord checks what holds for everything that Place says.
func (w *table) checkWord(d Dataset, c PlaceShards) {
	w.t.Helper()
	staying, anyOwner := 0, false
	for _, n := range w.nodes {
		if n.Stays {
			staying++
		}
		anyOwner = anyOwner || n.Serving && n.Stays
	}
	for i, row := range c.Wanted {
		names := make([]string, len(row))
		for k, n := range row {
			names[k] = c.Nodes[n]
		}
		serving := slices.DeleteFunc(d.HoldersOf(i), func(id string) bool { return !w.serves(id) })
		switch {
		case len(serving) == 0:
			if !slices.Equal(names, d.WantedOf(i)) {
				w.t.Fatalf("shard %d is held by nobody who serves, and moves from %v to %v", i, d.WantedOf(i), names)
			}
		case anyOwner && !w.owns(names[0]):
			w.t.Fatalf("shard %d goes to %s, which may not own", i, names[0])
		}
		if len(serving) == 0 || !anyOwner {
			continue
		}
		if n := min(d.Replicas, staying-1) + 1; len(row) != n && w.enough(d, i, n) {
			w.t.Fatalf("shard %d is to be on %v, which is not %d nodes", i, names, n)
		}
		for _, id := range names {
			if !w.nodes[id].Stays && id != names[0] {
				w.t.Fatalf("shard %d: %s goes, and is to hold a copy", i, id)
			}
		}
	}
}

// enough says whether so many nodes can have the shard: those that serve, or have
// it already.
func (w *table) enough(d Dataset, i, want int) bool {
	n := 0
	for id, node := range w.nodes {
		if node.Stays && (node.Serving || d.Holds(id, i)) {
			n++
		}
	}
	return n >= want
}

// checkOwners: right after Place has spoken, whoever owns a shard serves, if
// anybody who holds it does.
func (w *table) checkOwners() {
	w.t.Helper()
	d := w.dataset()
	for i := range d.Shards {
		for _, id := range d.HoldersOf(i) {
			if w.serves(id) && !w.serves(d.Owner(i)) {
				w.t.Fatalf("shard %d: %s holds it and serves, yet it is %q's", i, id, d.Owner(i))
			}
			if !w.disk[id][i] {
				w.t.Fatalf("shard %d: %s is named as a holder and isn't one", i, id)
			}
		}
	}
}

// fetch lets nodes remove what nobody wants of them, and fetch and report some of
// what they lack: all of it, if share is 1.
func (w *table) fetch(share float64) (news bool) {
	w.t.Helper()
	for _, n := range w.list() {
		d := w.dataset()
		maps.DeleteFunc(w.disk[n.ID], func(i int, _ bool) bool {
			return n.Serving && !d.Lost(i) && !d.Wants(n.ID, i) && !d.Holds(n.ID, i)
		})
		var got []int
		for i := range d.Shards {
			if !n.Serving {
				continue
			}
			source := w.disk[n.ID][i]
			for _, id := range d.HoldersOf(i) {
				source = source || w.serves(id)
			}
			if source && (d.Wants(n.ID, i) || d.Lost(i)) && !d.Holds(n.ID, i) && w.seed.Float64() < share {
				got = append(got, i)
				w.disk[n.ID][i] = true
			}
		}
		if len(got) > 0 {
			w.apply(HoldShards{ID: datasetID, Node: n.ID, Shards: got})
			news = true
		}
	}
	return news
}

// settle goes on until nothing changes any more, and checks how it stands then.
func (w *table) settle() {
	w.t.Helper()
	for round := 0; w.fetch(1) || w.place(); round++ {
		if round > 12 {
			w.t.Fatalf("no end of placing: %s", w)
		}
	}
	w.checkSettled()
}

func (w *table) checkSettled() {
	w.t.Helper()
	d := w.dataset()
	b := newBoard(d, w.list())
	rows := b.movable()
	owned := map[string]int{}
	for _, i := range rows {
		owned[d.Owner(i)]++
		if !d.Settled(i) && w.enough(d, i, len(d.WantedOf(i))) {
			w.t.Fatalf("shard %d is on %v and wanted on %v: %+v", i, d.HoldersOf(i), d.WantedOf(i), w.nodes)
		}
	}
	for id, quota := range w.quotas(len(rows)) {
		if off(owned[id], quota) {
			w.t.Fatalf("%s owns %d shards of %d, and should %d: %s", id, owned[id], len(rows), quota, w)
		}
	}
	if lacks := d.Lacks(w.serves); lacks.Unserved != len(d.Shards)-len(rows) || lacks.Waiting != 0 {
		w.t.Fatalf("%+v, when %d of %d can be served", lacks, len(rows), len(d.Shards))
	}
}

// quotas divides the shards by weight alone, in fractions first.
func (w *table) quotas(shards int) map[string]int {
	b := newBoard(w.dataset(), w.list())
	var claims []claim
	for n, p := range b.nodes {
		if b.eligible[n] {
			claims = append(claims, claim{node: n, weight: p.Weight, most: shards, has: w.state.ShardsOwned(p.ID)})
		}
	}
	quotas := map[string]int{}
	for k, part := range divide(shards, claims) {
		quotas[b.nodes[claims[k].node].ID] = part
	}
	return quotas
}

// owners is one node's name a shard.
func (w *table) owners() []string {
	d := w.dataset()
	list := make([]string, len(d.Shards))
	for i := range list {
		if wanted := d.WantedOf(i); len(wanted) > 0 {
			list[i] = wanted[0]
		}
	}
	return list
}

func runs(owners []string) int { return len(slices.Compact(slices.Clone(owners))) }

func moves(before, after []string) int {
	n := 0
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return n
}

// String is each run with its length.
func (w *table) String() string {
	var b strings.Builder
	owners := w.owners()
	for i := 0; i < len(owners); {
		n := i
		for n < len(owners) && owners[n] == owners[i] {
			n++
		}
		fmt.Fprintf(&b, "%s%d ", owners[i], n-i)
		i = n
	}
	return strings.TrimSpace(b.String())
}
