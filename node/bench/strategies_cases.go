package bench

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// This file fixes all graphs, batches and networks that strategies are compared with.
// Nothing here depends on what is measured.

// A meadow is a graph that is made up.
type meadow struct {
	name                 string
	kind                 string
	vertices, edges      uint64
	classes, communities int
	inside               float64 // with communities
	shards               int
	partitioner          string
	planted              bool // communities that a cut finds
}

// meadows are LeapGNN's planted graph, in which each shard can be a community, and one
// in which no cut finds anything.
var meadows = []meadow{
	{name: "sbm", kind: "sbm", vertices: 1 << 15, edges: 16 << 15, classes: 16, communities: 64, inside: 0.9, shards: 64, partitioner: "multilevel", planted: true},
	{name: "rmat", kind: "rmat", vertices: 1 << 14, edges: 16 << 14, classes: 16, shards: 64, partitioner: "multilevel"},
}

// halved is a planted graph of half the size, whose epochs can be waited for.
var halved = meadow{name: "half", kind: "sbm", vertices: 1 << 14, edges: 16 << 14, classes: 16, communities: 64, inside: 0.9, shards: 64, partitioner: "multilevel", planted: true}

// widths are how many features a vertex has.
var widths = []int{100, 600}

// named is what the dataset of a width is called, with so many copies beside the
// owner's.
func (m meadow) named(width, copies int) string {
	return fmt.Sprintf("%s-%d-%d", m.name, width, copies)
}

// made asks for the dataset.
func (m meadow) made(width, copies int) api.GenerateRequest {
	r := api.GenerateRequest{
		Name: m.named(width, copies), Kind: m.kind, Vertices: m.vertices, Edges: m.edges, Features: width, Classes: m.classes, Communities: m.communities,
		DatasetOptions: api.DatasetOptions{Shards: m.shards, Partitioner: m.partitioner, Replicas: &copies, Seed: 1},
	}
	if m.communities > 0 {
		r.Inside, r.Homophily = &m.inside, &m.inside
	}
	return r
}

// A load is what a step of a job is made of.
type load struct {
	model   string
	hidden  int
	fanouts []int
	batch   int
}

func (l load) String() string {
	return fmt.Sprintf("%s, hidden %d, fan-out %s, batch %d", l.model, l.hidden, l.hops(), l.batch)
}

func (l load) hops() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(l.fanouts), " ", ","), "[]")
}

// ask asks for a job of so many epochs, which is evaluated after the last alone.
func (l load) ask(dataset, strategy string, epochs int, set ...api.Setting) api.TrainRequest {
	layers, never := len(l.fanouts), epochs+1
	seed, heads := uint64(1), 1 // a GAT's one head is as wide as others' rows
	return api.TrainRequest{
		Dataset: dataset, Model: l.model, Layers: &layers, Hidden: &l.hidden, Heads: &heads, Fanout: l.fanouts, Batch: &l.batch, Features: "none",
		Epochs: &epochs, EvalEvery: &never, Seed: &seed, Strategy: strategy, Set: set,
	}
}

// A weighing is a load whose bytes are counted, and what leap may send at most of what
// centric does on a planted graph. On all others it may not send more.
type weighing struct {
	load
	planted float64
}

var weighings = []weighing{
	{load{"sage", 16, []int{10, 10}, 512}, 0.4},
	{load{"sage", 16, []int{10, 10}, 2048}, 1},
	{load{"sage", 16, []int{10, 10, 10}, 2048}, 1},
}

// The ladder's load and rungs.
var climbed = load{"sage", 16, []int{10, 10}, 512}

const climbedWidth = 100

// sweptRates are the learning rates of a sweep whose bytes are counted.
var sweptRates = []string{"0.1", "0.03", "0.01", "0.003"}

type step struct {
	name     string
	strategy string
	set      []api.Setting
	epochs   int // the last three are measured
}

func set(pairs ...string) (list []api.Setting) {
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		list = append(list, api.Setting{Key: key, Value: value})
	}
	return list
}

const (
	warmUp   = 1
	measured = 3
)

// rungs are LeapGNN's ladder on so many nodes. Slots are found by trying one fewer each
// epoch.
func rungs(nodes int) []step {
	return []step{
		{"centric", "centric", nil, warmUp + measured},
		{"+micrographs", "leap", set("leap.mode=migrate", "leap.pregather=off", "leap.merge=off"), warmUp + measured},
		{"+pre-gathering", "leap", set("leap.mode=migrate", "leap.merge=off"), warmUp + measured},
		{"+merging", "leap", set("leap.mode=migrate", "leap.merge=auto"), warmUp + nodes + 1 + measured},
		{"+merging to one slot", "leap", set("leap.mode=migrate", "leap.merge=1"), warmUp + measured},
		{"stay", "leap", set("leap.mode=stay"), warmUp + measured},
	}
}

// columnRungs are the ladder of p3, each rung with what those before it have.
func columnRungs() []step {
	return []step{
		{"centric", "centric", nil, warmUp + measured},
		{"p3", "p3", set("p3.roots=slices", "p3.push=blocks"), warmUp + measured},
		{"+roots=grain", "p3", set("p3.roots=grain", "p3.push=blocks"), warmUp + measured},
		{"+push=resample", "p3", set("p3.roots=grain", "p3.push=resample"), warmUp + measured},
		{"+inflight=3", "p3", set("p3.roots=grain", "p3.push=resample", "p3.inflight=3"), warmUp + measured},
	}
}

// Epochs whose time is compared: those of p3 as it is published.
var (
	timedModels  = []string{"gcn", "sage", "gat"}
	timedHidden  = []int{16, 128}
	timedWays    = []string{"centric", "leap", "p3"}
	timedSet     = map[string][]api.Setting{"p3": columnRungs()[1].set}
	timedFanouts = []int{10, 10}
)

const timedBatch = 512

// link is the network and the share of processors that each of so many nodes has where
// time is taken. The rate is one at which centric waits for features for about as much of
// its time as is published.
func link(nodes int) shape.Link {
	return shape.Link{Rate: 400_000_000, Cores: min(0.45, 0.9*float64(runtime.NumCPU())/float64(nodes))}
}

// published is the share of its time that LeapGNN's authors saw DGL wait for features.
var published = [2]float64{0.44, 0.83}

// What sharing costs is measured on three nodes without a network to speak of.
var (
	shared      = []load{{"gcn", 128, []int{10, 10}, 2048}, {"sage", 128, []int{10, 10}, 2048}, {"gat", 128, []int{10, 10}, 2048}}
	sharedWidth = 100
	sharedNodes = 3
	sharedMore  = 8 // epochs, beyond the first two
	// sharedKept is without and with half of the graph's rows kept, 6.5 MB a node.
	sharedKept = [][]api.Setting{nil, set("leap.cache=16384")}
)

// What a kill interrupts: steps are long enough to be told apart.
var (
	interrupted       = load{"sage", 128, []int{10, 10, 10}, 4096}
	interruptedWidth  = 600
	interruptedEpochs = 1000
)
