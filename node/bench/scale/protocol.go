package scale

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// This file fixes graphs, jobs, cells and bars. Nothing here depends on what is measured.

// protocol is part of the key of every kept cell. It changes with what is measured, or
// how.
const protocol = 1

const (
	mib = 1 << 20
	gib = 1 << 30
)

// The bars.
const (
	overBound    = 1.15      // a peak over --memory
	overLimit    = 1.2       // a real limit over --memory
	rise         = 64 * mib  // of a daemon that refuses a job, and a minute after a job
	forecastLow  = 0.85      // forecast over peak
	forecastHigh = 1.3       //
	onFour       = 0.45      // the worst peak over that on one node, both above idle
	onEight      = 0.3       //
	deepOnThree  = 0.45      // graph and pipe over single, both above idle
	deepOnEight  = 0.22      //
	again        = 1.1       // the peak of the hundredth job over that of the first
	answer       = 2.0       // seconds until a job that can't fit is refused
	thousandRoom = 300 * mib // what a thousand layers are asked for with
	papersRoom   = gib       // of each of four daemons
	papersTime   = time.Hour // for all of it, on two cores
)

// How memory is sampled.
const (
	every    = 50 * time.Millisecond // how often memory is read
	settle   = 2 * time.Second       // from a ready mesh to the reading that counts as idle
	minute   = time.Minute           // after a job, until memory must have been given back
	hundred  = 100                   // jobs in the same daemons
	patience = 20 * time.Minute      // for one job
)

// reserve is what the machine must have left. A cell that would take it is ended.
const reserve = 3 * gib

var (
	strategies = []string{"single", "centric", "leap", "p3", "local", "grappa", "graph", "pipe"}
	sizes      = []int{1, 2, 4, 8}
	shares     = []int{0, 2, 4, 8} // what one node needs is divided by these; 0: no bound
	falling    = []string{"leap", "centric", "grappa", "graph", "pipe"}
	limited    = []string{"single", "leap", "p3", "graph", "pipe"}
	limitedOn  = []int{1, 2}
	limits     = []string{"data", "group"}
)

// A graphSpec says how to generate a graph. Edges are those stored, before those drawn
// twice are merged.
type graphSpec struct {
	name    string
	request api.GenerateRequest
	atLeast uint64 // edges
}

// papersMerged makes up for edges that are drawn twice and merged.
const papersMerged = 1.06

// graphs returns the graphs, at a share of their size for trying out, and papers at a
// share of ogbn-papers100M's size.
func graphs(scale, papers float64) map[string]graphSpec {
	none, all := 0, sizes[len(sizes)-1]-1
	products := api.GenerateRequest{Preset: "products", Scale: 0.22 * scale}
	list := []graphSpec{
		{"products", products, 24_000_000},
		{everywhere, products, 24_000_000},
		{"deep", made(500_000, 44_500_000, 100, 47, scale), 38_000_000},
		{"thousand", made(300_000, 6_450_000, 100, 47, scale), 6_000_000},
		{"small", api.GenerateRequest{Preset: "products", Scale: 0.05 * scale}, 0},
		{"papers", api.GenerateRequest{Preset: "papers100m", Scale: papersMerged * papers}, 0},
	}
	list = append(list, linkGraphs(scale)...)
	byName := map[string]graphSpec{}
	for _, g := range list {
		g.request.Name = g.name
		g.request.DatasetOptions = api.DatasetOptions{Shards: 64, Replicas: &none, Seed: 1}
		switch g.name {
		case everywhere:
			g.request.Replicas = &all
		case "papers":
			g.request.DType = "bf16"
			g.request.Shards, g.request.Makers = 128, "all"
			g.atLeast = uint64(3_200_000_000 * papers * scaleSlack(10*papers))
		}
		g.atLeast = uint64(float64(g.atLeast) * scale * scaleSlack(scale))
		byName[g.name] = g
	}
	return byName
}

// scaleSlack allows small graphs to lose more edges to merging.
func scaleSlack(scale float64) float64 {
	if scale < 1 {
		return 0.8
	}
	return 1
}

func made(vertices, edges uint64, features, classes int, scale float64) api.GenerateRequest {
	return api.GenerateRequest{
		Kind: "sbm", Vertices: uint64(float64(vertices) * scale), Edges: uint64(float64(edges) * scale), Features: features, Classes: classes,
	}
}

// A job is what a cell trains.
type job struct {
	Graph    string
	Strategy string
	Model    string
	Layers   int
	Hidden   int
	Batch    int // 0: the whole graph
	Fanout   []int
	Epochs   int
	Set      []string // KEY=VALUE
	Task     string   `json:",omitempty"` // "": what the graph has
	Every    int      `json:",omitempty"` // how often it is evaluated; 0: after its last epoch
}

// sampled is the mini-batch job of a strategy, and whole its full-graph job.
func sampled(strategy string, set ...string) job {
	return job{Graph: "products", Strategy: strategy, Model: "sage", Layers: 3, Hidden: 64, Batch: 1024, Fanout: []int{15, 10, 5}, Epochs: 1, Set: set}
}

func whole(strategy string, set ...string) job {
	return job{Graph: "products", Strategy: strategy, Model: "gcn", Layers: 3, Hidden: 64, Epochs: 2, Set: set}
}

// everywhere is the graph of which each node has a copy, which single needs.
const everywhere = "products-copied"

// jobOf is the job that stands for a strategy in the tables.
func jobOf(strategy string, set ...string) job {
	if strategy == "graph" || strategy == "pipe" {
		return whole(strategy, set...)
	}
	j := sampled(strategy, set...)
	if strategy == "single" {
		j.Graph = everywhere
	}
	return j
}

// deep is the full-graph job of four layers.
func deep(strategy string) job {
	return job{Graph: "deep", Strategy: strategy, Model: "gcn", Layers: 4, Hidden: 32, Epochs: 2}
}

func thousand() job {
	return job{Graph: "thousand", Strategy: "single", Model: "gcn", Layers: 1000, Hidden: 16, Epochs: 1}
}

// request returns what is asked of a daemon.
func (j job) request() api.TrainRequest {
	seed, evaluated := uint64(1), cmp.Or(j.Every, j.Epochs)
	r := api.TrainRequest{
		Dataset: j.Graph, Strategy: j.Strategy, Model: j.Model, Layers: &j.Layers, Hidden: &j.Hidden, Batch: &j.Batch, Fanout: j.Fanout,
		Epochs: &j.Epochs, EvalEvery: &evaluated, Task: j.Task, Seed: &seed, Features: "none",
	}
	for _, s := range j.Set {
		key, value, _ := strings.Cut(s, "=")
		r.Set = append(r.Set, api.Setting{Key: key, Value: value})
	}
	return r
}

// Kinds of cells, by what is done with the daemons.
const (
	once     = ""         // one job
	after    = "after"    // one job, and a reading a minute after it
	repeat   = "repeat"   // a hundred jobs
	trip     = "trip"     // one job, and its predictions for all vertices
	imported = "import"   // none: the graph alone
	partners = "partners" // one job, and the best partners of all vertices in less memory
	killed   = "killed"   // one job, of which a daemon is killed
)

// A cell is one measurement: a job on daemons that are started for it.
type cell struct {
	Kind   string
	Nodes  int
	Job    job
	Share  int    // the bound is what one node needs, divided by this; 0: see Bound
	Bound  uint64 // of --memory; 0: none
	Limit  string // a real limit of the processes: data, group, or none
	Scale  float64
	Papers float64 // the share of papers100M's size
	Trains uint64  `json:",omitempty"` // of --memory while it trains; 0: Bound
}

// name says which cell it is; it is unique, and what rows are selected by.
func (c cell) name() string {
	parts := []string{c.Job.Graph, c.Job.Strategy, fmt.Sprint(c.Nodes)}
	if c.Kind == imported {
		parts = []string{c.Job.Graph, fmt.Sprint(c.Nodes)}
	}
	if c.Kind != once {
		parts = append(parts, c.Kind)
	}
	if len(c.Job.Set) > 0 {
		parts = append(parts, strings.Join(c.Job.Set, ","))
	}
	switch {
	case c.Share > 0:
		parts = append(parts, fmt.Sprintf("1/%d", c.Share))
	case c.Bound > 0:
		parts = append(parts, size(c.Bound))
	}
	if c.Limit != "" {
		parts = append(parts, c.Limit)
	}
	return strings.Join(parts, " ")
}

// key is the digest of all that the cell's result depends on but the program.
func (c cell) key() string {
	return digestOf(struct {
		Protocol int
		Cell     cell
		Graph    string
	}{protocol, c, c.graph().digest()})
}

// graph is the graph of a cell.
func (c cell) graph() graphSpec { return graphs(c.Scale, c.Papers)[c.Job.Graph] }

// digest is that of how a graph is generated.
func (g graphSpec) digest() string { return digestOf(g.request) }

func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// alone is the cell that tells what one node needs.
func (c cell) alone() cell {
	return cell{Nodes: 1, Job: c.Job, Scale: c.Scale}
}

// memoryCells are those of the memory table, the ones without a bound first.
func memoryCells(scale float64, on []int) (list []cell) {
	for _, nodes := range on {
		for _, share := range shares {
			for _, s := range strategies {
				list = append(list, cell{Nodes: nodes, Job: jobOf(s), Share: share, Scale: scale})
			}
		}
	}
	return list
}

// sharded is what has each node hold the edges of its own shards alone.
const sharded = "topology=sharded"

// fallingJobs are the jobs of which the worst peak must fall: as they are by default
// with no cache, and with the edges asked for where the strategy lets each node have all.
func fallingJobs() (list []job) {
	for _, s := range falling {
		switch s {
		case "leap":
			list = append(list, jobOf(s, "leap.cache=0"), jobOf(s, "leap.cache=0", sharded))
		case "centric":
			list = append(list, jobOf(s, "centric.cache=0"), jobOf(s, "centric.cache=0", sharded))
		default:
			list = append(list, jobOf(s))
		}
	}
	return list
}

// cached is leap with a cache of a fifth of the graph's rows.
func cached(scale float64) job {
	return jobOf("leap", fmt.Sprintf("leap.cache=%d", int(100_000*scale)), sharded)
}

func fallingCells(scale float64, on []int) (list []cell) {
	for _, j := range fallingJobs() {
		for _, nodes := range on {
			if nodes != 2 {
				list = append(list, cell{Nodes: nodes, Job: j, Scale: scale})
			}
		}
	}
	if slices.Contains(on, 4) {
		list = append(list, cell{Nodes: 4, Job: cached(scale), Scale: scale})
	}
	return list
}

func deepCells(scale float64, on []int) []cell {
	list := []cell{{Nodes: 1, Job: deep("single"), Scale: scale}}
	for _, nodes := range []int{3, 8} {
		for _, s := range []string{"graph", "pipe"} {
			if nodes <= on[len(on)-1]+1 {
				list = append(list, cell{Nodes: nodes, Job: deep(s), Scale: scale})
			}
		}
	}
	return list
}

func backCells(scale float64, on []int) []cell {
	nodes := min(4, on[len(on)-1])
	small := sampled("leap")
	small.Graph = "small"
	return []cell{
		{Kind: after, Nodes: 1, Job: jobOf("single"), Scale: scale},
		{Kind: after, Nodes: nodes, Job: jobOf("leap"), Scale: scale},
		{Kind: after, Nodes: nodes, Job: jobOf("graph"), Scale: scale},
		{Kind: repeat, Nodes: 2, Job: small, Scale: scale},
		{Nodes: 1, Job: thousand(), Bound: thousandRoom, Scale: scale},
	}
}

// limitCells run under a real limit, with bounds that suffice and that do not.
func limitCells(scale float64) (list []cell) {
	for _, limit := range limits {
		for _, nodes := range limitedOn {
			for _, s := range limited {
				for _, share := range []int{1, 2, 8} {
					list = append(list, cell{Nodes: nodes, Job: jobOf(s), Share: share, Limit: limit, Scale: scale})
				}
			}
		}
	}
	return list
}

// papersCells are those of `make scale`: a graph that four daemons hold together.
func papersCells(papers float64) []cell {
	list := []cell{{Kind: imported, Nodes: 4, Job: job{Graph: "papers"}}}
	for _, s := range []string{"leap", "grappa"} {
		j := sampled(s)
		j.Graph = "papers"
		list = append(list, cell{Kind: trip, Nodes: 4, Job: j})
	}
	for i := range list {
		list[i].Bound, list[i].Papers, list[i].Scale = papersRoom, papers, 1
	}
	return list
}

// size prints bytes.
func size(n uint64) string {
	if n >= 10*gib {
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	}
	return fmt.Sprintf("%d MiB", (n+mib/2)/mib)
}
