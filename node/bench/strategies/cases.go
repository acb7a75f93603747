package strategies

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// This file fixes all graphs, batches and networks that strategies are compared with.
// Nothing here depends on what is measured.

// A graphSpec says how to generate a graph.
type graphSpec struct {
	name                 string
	kind                 string
	vertices, edges      uint64
	classes, communities int
	inside               float64 // with communities
	shards               int
	partitioner          string
	planted              bool // it has communities that a cut finds
}

// graphSpecs are LeapGNN's planted graph, in which each shard can be a community, and one
// without communities.
var graphSpecs = []graphSpec{
	{name: "sbm", kind: "sbm", vertices: 1 << 15, edges: 16 << 15, classes: 16, communities: 64, inside: 0.9, shards: 64, partitioner: "multilevel", planted: true},
	{name: "rmat", kind: "rmat", vertices: 1 << 14, edges: 16 << 14, classes: 16, shards: 64, partitioner: "multilevel"},
}

// halfGraph is a planted graph of half the size, whose epochs are short enough to be timed.
var halfGraph = graphSpec{name: "half", kind: "sbm", vertices: 1 << 14, edges: 16 << 14, classes: 16, communities: 64, inside: 0.9, shards: 64, partitioner: "multilevel", planted: true}

// widths are how many features a vertex has.
var widths = []int{100, 600}

// named returns the name of the dataset with features of a width and so many copies beside
// the owner's.
func (m graphSpec) named(width, copies int) string {
	return fmt.Sprintf("%s-%d-%d", m.name, width, copies)
}

// made returns the request that generates the dataset.
func (m graphSpec) made(width, copies int) api.GenerateRequest {
	r := api.GenerateRequest{
		Name: m.named(width, copies), Kind: m.kind, Vertices: m.vertices, Edges: m.edges, Features: width, Classes: m.classes, Communities: m.communities,
		DatasetOptions: api.DatasetOptions{Shards: m.shards, Partitioner: m.partitioner, Replicas: &copies, Seed: 1},
	}
	if m.communities > 0 {
		r.Inside, r.Homophily = &m.inside, &m.inside
	}
	return r
}

// A load is a model and its mini-batches.
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

// ask returns the request for a job of so many epochs, evaluated after the last alone. No row is
// kept, as in what was published, unless the settings say so.
func (l load) ask(dataset, strategy string, epochs int, set ...api.Setting) api.TrainRequest {
	layers, never := len(l.fanouts), epochs+1
	seed, heads := uint64(1), 1 // a GAT's one head is as wide as others' rows
	kept := strategy + ".cache"
	if (strategy == "leap" || strategy == "centric") && !slices.ContainsFunc(set, func(s api.Setting) bool { return s.Key == kept }) {
		set = append(slices.Clone(set), api.Setting{Key: kept, Value: "off"})
	}
	return api.TrainRequest{
		Dataset: dataset, Model: l.model, Layers: &layers, Hidden: &l.hidden, Heads: &heads, Fanout: l.fanouts, Batch: &l.batch, Features: "none",
		Epochs: &epochs, EvalEvery: &never, Seed: &seed, Strategy: strategy, Set: set,
	}
}

// A byteCase is a load whose bytes are counted, and what leap may send at most of what
// centric does on a planted graph. On all others it may not send more.
type byteCase struct {
	load
	planted float64
}

var byteCases = []byteCase{
	{load{"sage", 16, []int{10, 10}, 512}, 0.4},
	{load{"sage", 16, []int{10, 10}, 2048}, 1},
	{load{"sage", 16, []int{10, 10, 10}, 2048}, 1},
}

// The load of the ladders.
var ladderLoad = load{"sage", 16, []int{10, 10}, 512}

const ladderWidth = 100

// sweptRates are the learning rates of a sweep whose bytes are counted.
var sweptRates = []string{"0.1", "0.03", "0.01", "0.003"}

type ladderStep struct {
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

// ladder returns the steps of LeapGNN's ablation on so many nodes. The number of slots is
// found by trying one fewer every three epochs.
func ladder(nodes int) []ladderStep {
	return []ladderStep{
		{"centric", "centric", nil, warmUp + measured},
		{"+micrographs", "leap", set("leap.mode=migrate", "leap.pregather=off", "leap.merge=off"), warmUp + measured},
		{"+pre-gathering", "leap", set("leap.mode=migrate", "leap.merge=off"), warmUp + measured},
		{"+merging", "leap", set("leap.mode=migrate", "leap.merge=auto"), warmUp + 3*(nodes+1) + measured},
		{"+merging to one slot", "leap", set("leap.mode=migrate", "leap.merge=1"), warmUp + measured},
		{"stay", "leap", set("leap.mode=stay"), warmUp + measured},
	}
}

// columnLadder returns the steps of p3's ablation. Each has what those before it have.
func columnLadder() []ladderStep {
	return []ladderStep{
		{"centric", "centric", nil, warmUp + measured},
		{"p3", "p3", set("p3.roots=slices", "p3.push=blocks"), warmUp + measured},
		{"+roots=grain", "p3", set("p3.roots=grain", "p3.push=blocks"), warmUp + measured},
		{"+push=resample", "p3", set("p3.roots=grain", "p3.push=resample"), warmUp + measured},
		{"+inflight=3", "p3", set("p3.roots=grain", "p3.push=resample", "p3.inflight=3"), warmUp + measured},
	}
}

// A way is a strategy with the settings by which epochs are timed.
type way struct {
	name, strategy string
	set            []api.Setting
}

// What epochs are timed with: the models of p3's authors, and p3 as they published it, with three
// batches in flight, and with all that makes it faster here.
var (
	timedModels = []string{"gcn", "sage", "gat"}
	timedHidden = []int{16, 128}
	timedWays   = []way{
		{"centric", "centric", nil},
		{"leap", "leap", nil},
		{"p3, as published", "p3", set("p3.roots=slices", "p3.push=blocks", "p3.inflight=3")},
		{"p3, three in flight", "p3", set("p3.roots=grain", "p3.push=resample", "p3.inflight=3")},
		{"p3, exact", "p3", set("p3.roots=grain", "p3.push=resample")},
	}
	timedFanouts = []int{10, 10}
)

const timedBatch = 512

// link returns the network and the share of processors of each of so many nodes that are
// timed. At this rate centric waits for features for more of its time than was published.
func link(nodes int) shape.Link {
	return shape.Link{Rate: 400_000_000, Cores: min(0.45, 0.9*float64(runtime.NumCPU())/float64(nodes))}
}

// published is the share of its time that LeapGNN's authors saw DGL wait for features.
var published = [2]float64{0.44, 0.83}

// What the cost of sharing is measured with: three nodes on the loopback interface.
var (
	shared      = []load{{"gcn", 128, []int{10, 10}, 2048}, {"sage", 128, []int{10, 10}, 2048}, {"gat", 128, []int{10, 10}, 2048}}
	sharedWidth = 100
	sharedNodes = 3
	sharedMore  = 8 // epochs, beyond the first two
	// sharedKept is without a cache and with half of the graph's rows kept, 6.5 MB a node.
	sharedKept = [][]api.Setting{nil, set("leap.cache=16384")}
)

// What a kill interrupts. Its steps are long enough to be counted from outside.
var (
	interrupted       = load{"sage", 128, []int{10, 10, 10}, 4096}
	interruptedWidth  = 600
	interruptedEpochs = 1000
)
