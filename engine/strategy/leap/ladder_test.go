package leap

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
)

// A set of vertices.
type set map[uint32]bool

func (s set) add(o set) {
	for v := range o {
		s[v] = true
	}
}

// A ladder is a planted graph, each community a shard, and which inputs each root has.
type ladder struct {
	t       *testing.T
	layout  peer.Layout
	sampler *sample.Sampler
	inputs  map[uint32]set // of single roots: V_0({root})
}

const (
	ladderNodes  = 4
	ladderShards = 16
	ladderStep   = 3
)

func newLadder(t *testing.T) *ladder {
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 8192, Edges: 8192 * 12, Classes: ladderShards, Communities: ladderShards,
		Inside: 0.9, Homophily: 0.9, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &ladder{t: t, layout: peer.Layout{Nodes: ladderNodes}, inputs: map[uint32]set{}}
	// Vertices are numbered anew, class by class, since a class is a community.
	number := make([]uint32, 8192)
	next := uint32(0)
	for shard := range int32(ladderShards) {
		l.layout.Owners = append(l.layout.Owners, int(shard)*ladderNodes/ladderShards)
		l.layout.Firsts = append(l.layout.Firsts, next)
		for v, label := range src.Labels() {
			if label == shard {
				number[v] = next
				next++
			}
		}
	}
	l.layout.Firsts = append(l.layout.Firsts, next)
	rows := make([]set, next)
	err = src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i := range b.Src {
			to := number[b.Dst[i]]
			if rows[to] == nil {
				rows[to] = set{}
			}
			rows[to][number[b.Src[i]]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &graph.Shard{Shards: 1, Vertices: int(next), Total: next, Indptr: []int64{0}}
	for v := range next {
		for _, u := range slices.Sorted(maps.Keys(rows[v])) {
			s.Indices = append(s.Indices, int32(u))
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	topology, err := sample.NewTopology([]*graph.Shard{s})
	if err != nil {
		t.Fatal(err)
	}
	l.sampler = sample.New(topology, sample.Options{Fanouts: []int{4, 4}, Seed: 7})
	return l
}

// sampled are the input vertices of roots that are sampled together.
func (l *ladder) sampled(roots []uint32) set {
	var b sample.Batch
	if err := l.sampler.Sample(l.t.Context(), &b, 1, ladderStep, roots); err != nil {
		l.t.Fatal(err)
	}
	of := set{}
	for _, v := range b.Blocks[0].Vertices {
		of[v] = true
	}
	return of
}

// wanted are the input vertices of roots, by the formula: the union of those of each.
func (l *ladder) wanted(roots []uint32) set {
	of := set{}
	for _, v := range roots {
		if l.inputs[v] == nil {
			l.inputs[v] = l.sampled([]uint32{v})
		}
		of.add(l.inputs[v])
	}
	return of
}

// A load is what crosses the network in a step, in sum over all nodes.
type load struct {
	slots    int // of each node
	requests int
	rows     int
	hops     int // of models
	local    int // rows that are there, each as often as they are looked up
}

// fetch adds what a node asks for to have some inputs.
func (l *ladder) fetch(to *load, node int, inputs set) {
	owners := map[int]bool{}
	for v := range inputs {
		if owner := l.layout.Owner(v); owner != node {
			to.rows++
			owners[owner] = true
		} else {
			to.local++
		}
	}
	to.requests += len(owners)
}

// dealt counts what a dealer's groups bring about: each group's rows asked for apart, or
// all at once.
func (l *ladder) dealt(d deal.Dealer, batch []uint32, apart bool) (of load) {
	for node := range ladderNodes {
		groups, all := d.Deal(nil, batch, node), set{}
		of.slots = len(groups)
		for _, g := range groups {
			if g.From >= 0 {
				of.hops++
			}
			inputs := l.sampled(g.Roots)
			if apart {
				l.fetch(&of, node, inputs)
			}
			all.add(inputs)
		}
		if !apart {
			l.fetch(&of, node, all)
		}
	}
	return of
}

// The ladder of the sheet, from its formulas over sets that are made here, root by root,
// and from what is dealt.
func TestTheLadder(t *testing.T) {
	l := newLadder(t)
	const n, size = ladderNodes, 128
	var batch []uint32
	for v := range l.layout.Vertices() {
		batch = append(batch, v)
	}
	sample.Order(7, 1, batch)
	batch = batch[ladderStep*size:][:size]

	slice := func(d int) (of []uint32) { // of equal sizes here
		return batch[d*size/n : (d+1)*size/n]
	}
	group := func(d, m int) (of []uint32) {
		for _, v := range slice(d) {
			if l.layout.Owner(v) == m {
				of = append(of, v)
			}
		}
		return of
	}
	var sliced, apart, together load
	for m := range n {
		l.fetch(&sliced, m, l.wanted(slice(m)))
		all := set{}
		for d := range n {
			inputs := l.wanted(group(d, m))
			l.fetch(&apart, m, inputs)
			all.add(inputs)
		}
		l.fetch(&together, m, all)
	}
	sliced.slots, apart.slots = 1, n
	apart.hops = n * (n - 1)

	check := func(name string, got, want load) {
		t.Helper()
		t.Logf("%s: %+v", name, got)
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	slicing, err := centric.Deal(l.layout, strategy.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	check("centric", l.dealt(slicing, batch, false), sliced)
	check("+micrographs", l.dealt(dealer(t, l.layout, settings("migrate", "off", false)), batch, true), apart)
	for slots := n; slots > 0; slots-- {
		together.slots, together.hops = slots, n*(slots-1)
		merge := strconv.Itoa(slots)
		check("+pre-gathering, slots "+merge, l.dealt(dealer(t, l.layout, settings("migrate", merge, false)), batch, false), together)
	}
	check("stay", l.dealt(dealer(t, l.layout, settings("stay", "", false)), batch, false), together)
	grains := l.dealt(dealer(t, l.layout, settings("stay", "", true)), batch, false)
	grains.slots = together.slots
	check("stay, by grains", grains, together)

	// On a cut as good as this one each rung is worth its while.
	if sliced.requests > n*(n-1) || apart.requests > n*n*(n-1) || together.requests > n*(n-1) {
		t.Errorf("requests %d, %d and %d are more than there are owners to ask", sliced.requests, apart.requests, together.requests)
	}
	if apart.rows*2 > sliced.rows || together.rows > apart.rows {
		t.Errorf("rows %d, %d, %d: roots are not where their inputs are", sliced.rows, apart.rows, together.rows)
	}
}
