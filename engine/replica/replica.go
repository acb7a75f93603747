package replica

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// Options select what is fetched.
type Options struct {
	Dataset string // digest of its content, the cache's key
	// Topology is replicated, sharded, or auto (also ""): replicated if it takes no
	// more than a half of Memory (0: no bound).
	Topology string
	Memory   uint64
	// Later leaves edges that are many beside Memory to another Bring, if they would be
	// fetched by auto: a run that does not fit even without them takes little before it is
	// refused.
	Later bool
	// Fits says that edges fit memory, as the caller has found: auto fetches them.
	Fits bool
	// Needed says that the job can't do without edges: no other topology is advised.
	Needed bool
	// Bare means that labels and marks stay with their owners, and only the training
	// vertices of the split Split are listed.
	Bare  bool
	Split int
	// Cache keeps what is fetched, of which edges in files; nil: it is all in memory, and
	// nothing is kept.
	Cache *Cache
	Tally *peer.Tally
}

// A Replica is a node's view of all shards, without the features of remote ones.
type Replica struct {
	// Shards are all of the graph's, in order: the local ones as they are, the others
	// without features and, where they are not fetched, without edges (Indptr nil), labels
	// and marks.
	Shards []*graph.Shard
	// Summaries are of shards without edges; nil for others.
	Summaries []*sample.Summary
	// Stats are the features' of all shards.
	Stats []graph.FeatureStats
	// Seeds are of the shards whose labels and marks are not here; nil for others.
	Seeds      []*graph.Seeds
	Replicated bool
	Bytes      uint64 // of all of it in memory, without local shards
	Filed      uint64 // bytes of mapped files that hold edges, which are no memory of the process
	Full       string // why edges are not here that memory has room for; "": there is no such reason
	Later      uint64 // more that edges take, which were left for later; 0: none were

	sizes map[int]graph.SkeletonSize // of the shards that are not held
}

// The topologies that may be requested.
const (
	replicated = "replicated"
	sharded    = "sharded"
	auto       = "auto"
)

// Bring fetches the remote shards from their owners.
func Bring(ctx context.Context, peers peer.Peers, work peer.Work, held []*graph.Shard, o Options) (*Replica, error) {
	b := &bringing{peers: peers, work: work, held: held, o: o, cache: o.Cache}
	if b.cache == nil {
		b.cache = new(Cache)
	}
	if err := b.list(); err != nil {
		return nil, fmt.Errorf("bring the topology of the graph: %w", err)
	}
	if err := b.run(ctx); err != nil {
		return nil, fmt.Errorf("bring the topology of the graph: %w", err)
	}
	r, err := b.whole()
	if err != nil {
		return nil, fmt.Errorf("bring the topology of the graph: %w", errors.Join(err, b.cache.Close()))
	}
	return r, nil
}

// bringing is the state of Bring.
type bringing struct {
	peers peer.Peers
	work  peer.Work
	held  []*graph.Shard
	o     Options
	cache *Cache

	far   map[int][]int // owners, with their shards that are remote
	edges bool          // whether they are fetched with edges
	later uint64        // more that those take which are fetched later
	want  wanted
	files *filing // where edges are put; nil: they stay in memory
	full  string  // why edges are not fetched though there is memory for them

	mu    sync.Mutex // guards what follows, while owners are asked
	sizes map[int]graph.SkeletonSize
	of    map[int]*brought
}

// list finds the remote shards.
func (b *bringing) list() error {
	if len(b.held) != len(b.work.Owners) {
		return fmt.Errorf("%d shards are listed as held or not, and %d have owners", len(b.held), len(b.work.Owners))
	}
	switch b.o.Topology {
	case "", auto, replicated, sharded:
	default:
		return fmt.Errorf("it can't be %q: it is %s, %s or %s", b.o.Topology, auto, replicated, sharded)
	}
	b.far = map[int][]int{}
	for i, n := range b.work.Owners {
		switch {
		case b.held[i] != nil:
			continue
		case n == b.work.Self:
			return fmt.Errorf("shard %d is this node's and is not here", i)
		case n < 0 || n >= len(b.work.Nodes):
			return fmt.Errorf("shard %d is node %d's, of %d", i, n, len(b.work.Nodes))
		}
		b.far[n] = append(b.far[n], i)
	}
	return nil
}

func (b *bringing) run(ctx context.Context) (err error) {
	if b.sizes, b.of, err = b.cache.known(b.o.Dataset); err != nil {
		return err
	}
	if err := b.askSizes(ctx); err != nil {
		return err
	}
	if err := b.decide(); err != nil {
		return err
	}
	err = b.fetch(ctx)
	if full, is := errors.AsType[*Full](err); is && b.o.Topology != replicated {
		b.edges, b.want.edges, b.full = false, false, full.instead()
		err = b.fetch(ctx)
	}
	return err
}

// fetch fetches and keeps the shards, or whatever of them came before an error.
func (b *bringing) fetch(ctx context.Context) error {
	err := b.askSkeletons(ctx)
	return errors.Join(err, b.cache.keep(b.o.Dataset, b.sizes, b.of))
}

// mostAnswer bounds the size of a shard's skeleton, as of any answer.
const mostAnswer = 1<<32 - 1

// many returns from how many bytes on edges are left for later.
func many(memory uint64) uint64 {
	const most = 64 << 20
	if memory == 0 {
		return most
	}
	return min(most, memory/32)
}

// decide decides whether edges are fetched.
func (b *bringing) decide() error {
	var with, without, largest uint64
	for _, shards := range b.far {
		for _, i := range shards {
			with += uint64(b.sizes[i].Size(true, !b.o.Bare))
			without += uint64(b.sizes[i].Size(false, !b.o.Bare))
			largest = max(largest, uint64(b.sizes[i].Size(true, !b.o.Bare)))
		}
	}
	fits := largest <= mostAnswer && (b.o.Memory == 0 || b.o.Fits || with <= b.o.Memory/2)
	b.edges = b.o.Topology == replicated || b.o.Topology != sharded && fits
	b.want = wanted{edges: b.edges, labels: !b.o.Bare}
	if b.o.Bare {
		b.want.split = b.o.Split
	}
	if b.edges && b.o.Later && b.o.Topology != replicated && with > many(b.o.Memory) && !b.here() {
		b.edges, b.want.edges, b.later = false, false, with-without
	}
	takes := with
	if !b.edges {
		takes = without
	}
	if b.edges && largest > mostAnswer {
		return fmt.Errorf("the edges of a shard of another node take %d bytes, and %d can be sent: %s, or import the dataset with more shards", largest, uint64(mostAnswer), b.o.instead("use nodes that hold it"))
	}
	if b.o.Memory > 0 && takes > b.o.Memory {
		advice := "use more nodes or nodes with more memory"
		if b.edges {
			advice = b.o.instead(withMore)
		}
		return fmt.Errorf("what this node must know of other nodes' shards takes %d bytes of memory, and it has %d: %s", takes, b.o.Memory, advice)
	}
	return nil
}

// instead is what to do where edges of other nodes can't be here: ask for them as they are needed,
// or what a job does that needs them all.
func (o *Options) instead(needed string) string {
	if o.Needed {
		return needed
	}
	return "use {topology}=sharded"
}

const withMore = "use nodes with more memory, since the job needs all edges on each"

// here reports whether all shards are cached as they are wanted.
func (b *bringing) here() bool {
	for _, shards := range b.far {
		for _, i := range shards {
			if k := b.of[i]; k == nil || k.how != b.want {
				return false
			}
		}
	}
	return true
}

// whole joins local and fetched shards, and checks that they are one graph.
func (b *bringing) whole() (*Replica, error) {
	n := len(b.held)
	r := &Replica{
		Shards: make([]*graph.Shard, n), Summaries: make([]*sample.Summary, n), Stats: make([]graph.FeatureStats, n), Seeds: make([]*graph.Seeds, n),
		Replicated: b.edges, Later: b.later, Full: b.full, sizes: b.sizes,
	}
	for i, s := range b.held {
		if s != nil {
			r.Shards[i], r.Stats[i] = s, graph.StatsOf(s)
			continue
		}
		k := b.of[i]
		r.Shards[i], r.Stats[i], r.Seeds[i] = k.skeleton.Shard, k.skeleton.Stats, k.skeleton.Seeds
		if k.file != nil {
			r.Filed += k.bytes
		} else {
			r.Bytes += k.bytes
		}
		if !b.edges {
			r.Summaries[i] = &sample.Summary{Edges: k.skeleton.Edges}
		}
	}
	if err := b.check(r); err != nil {
		return nil, err
	}
	return r, nil
}

// splits returns how many splits a shard has.
func (r *Replica) splits(i int) int {
	if of := r.Seeds[i]; of != nil {
		return len(of.Splits)
	}
	return len(r.Shards[i].Marks)
}

var errNoShards = errors.New("the graph has no shards")

// check returns an error if a shard is not of the same graph as the first, or does not
// follow the one before it.
func (b *bringing) check(r *Replica) error {
	if len(r.Shards) == 0 {
		return errNoShards
	}
	first, next := r.Shards[0], uint64(0)
	for i, s := range r.Shards {
		if s.Number != i || s.Shards != len(r.Shards) || uint64(s.First) != next || s.Total != first.Total || s.Features != first.Features ||
			s.Classes != first.Classes || s.DType != first.DType || r.splits(i) != r.splits(0) || r.Stats[i].Sparse != r.Stats[0].Sparse || !alike(s, first) {
			return fmt.Errorf("shard %d, of node %s, is not of the same graph as shard 0, or does not follow the one before it", i, b.work.Nodes[b.work.Owners[i]])
		}
		next += uint64(s.Vertices)
	}
	if next != uint64(first.Total) {
		return fmt.Errorf("the shards have %d vertices of %d", next, first.Total)
	}
	return nil
}

// alike reports whether the edges of two shards have the same relations, of the same types, and as many
// features. All nodes compute with the types of the first.
func alike(a, b *graph.Shard) bool {
	if a.EdgeRows.Columns != b.EdgeRows.Columns || (a.Related == nil) != (b.Related == nil) {
		return false
	}
	return a.Related == nil || a.Related.Count == b.Related.Count && a.Related.Given == b.Related.Given && reflect.DeepEqual(a.Related.Types, b.Related.Types)
}
