// Package forecast compares what `train forecast` says with what jobs take, on shaped
// links. All nodes share this machine: each is a process with a fixed share of the
// processors, and forecasts are made by these processes, all at once, so that rates are
// measured under the same sharing as jobs.
package forecast

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// This file is the protocol. Graphs, jobs and bars were fixed before anything was measured.
// After a first run, in which times were forecast two to five times too short, these were
// changed, the last one after four cells of rmat had been seen:
//
//   - Links have no delay: this bench's machine has no netem, and sockets that wait for each
//     packet took half of the time and most of the processors.
//   - Control groups of nodes come before other work on the machine.
//   - Memory is that of the whole process, since forecasts and --memory are of it.
//   - No rows are kept, since strategies came to keep them by default: a forecast counts each
//     row in each epoch.
//
// What the model of times has of constants was set by the cells of sbm: the payload of a
// link, what waits in front of one, and what packets cost that come one by one. Cells of rmat
// test them.
//
//   - On 2, 4 and 8 nodes, on two graphs, two models are trained by every strategy.
//   - Each node has the same link and the same share of all processors, by a control group
//     and a network namespace. Where the machine gives no groups, the page says so. A forecast
//     is of nodes with such a share, which it is told: each daemon measures its rates within
//     its group, while the others do so, too.
//   - A job is trained when all nodes have given back what they held, or after ten seconds.
//     Then all nodes forecast it at the same time. The medians of their times count; bytes
//     and memory do not depend on who counts.
//   - A job trains five epochs and evaluates after the last alone. Bytes are the mean of
//     epochs 2 to 4, of all kinds, and the time is their median. Memory is the most that a node's
//     process holds during the job (RssAnon + RssShmem, every 20 ms), on the node where that
//     is most; the last evaluation counts.
//   - What comes in some epochs only comes in each: grappa.period=1, pipe.period=1, and .cache=off
//     of strategies that keep rows.
//   - Beside each cell are, in the JSON document, where the time went by the job's own count
//     (phases), and the processor time of all nodes in an epoch (used) and in a second of
//     doing nothing (idle).

var nodeCounts = []int{2, 4, 8}

var models = []string{"gcn", "sage"}

const (
	rate   = 400_000_000 // bits a second, each way
	hidden = 64
	batch  = 2048
	epochs = 5
	width  = 100 // features
)

var fanouts = []int{10, 10}

// The bars: shares of what was measured, of each cell, and of the mean of all.
const (
	bytesBar  = 0.05
	memoryBar = 0.30
	timeBar   = 0.50
	meanBar   = 0.25
)

// link returns the link of each of so many nodes, and its share of processors.
func link(nodes int) shape.Link {
	return shape.Link{Rate: rate, Cores: 0.9 * float64(runtime.NumCPU()) / float64(nodes)}
}

// A strategy with the settings that make each epoch alike.
type strategy struct {
	name  string
	set   []api.Setting
	whole bool // trains the whole graph in each step
}

var compared = []strategy{
	{name: "centric", set: []api.Setting{{Key: "centric.cache", Value: "off"}}},
	{name: "leap", set: []api.Setting{{Key: "leap.cache", Value: "off"}}},
	{name: "p3"},
	{name: "local", set: []api.Setting{{Key: "local.cache", Value: "off"}}},
	{name: "grappa", set: []api.Setting{{Key: "grappa.cache", Value: "off"}, {Key: "grappa.period", Value: "1"}}},
	{name: "graph", whole: true},
	{name: "pipe", set: []api.Setting{{Key: "pipe.period", Value: "1"}}, whole: true},
}

// graphs returns the requests that generate both: one with communities that a cut finds,
// and one without.
func graphs(quick bool) []api.GenerateRequest {
	share, copies := 0.9, 0
	vertices := uint64(1 << 15)
	if quick {
		vertices = 1 << 12
	}
	options := api.DatasetOptions{Shards: 64, Partitioner: "multilevel", Replicas: &copies, Seed: 1}
	return []api.GenerateRequest{
		{Name: "sbm", Kind: "sbm", Vertices: vertices, Edges: 16 * vertices, Features: width, Classes: 16, Communities: 64, Inside: &share, Homophily: &share, DatasetOptions: options},
		{Name: "rmat", Kind: "rmat", Vertices: vertices, Edges: 16 * vertices, Features: width, Classes: 16, DatasetOptions: options},
	}
}

// A cell is one job.
type cell struct {
	Graph    string `json:"graph"`
	Model    string `json:"model"`
	Nodes    int    `json:"nodes"`
	Strategy string `json:"strategy"`
}

func (c cell) String() string {
	return fmt.Sprintf("%s %s %s %d", c.Graph, c.Model, c.Strategy, c.Nodes)
}

// cells returns all cells whose name has one of some texts; "": all.
func cells(rows string, quick bool) (all []cell) {
	on := nodeCounts
	if quick {
		on = on[:1]
	}
	for _, n := range on {
		for _, g := range graphs(quick) {
			for _, m := range models {
				for _, s := range compared {
					c := cell{g.Name, m, n, s.name}
					for part := range strings.SplitSeq(rows, ",") {
						if strings.Contains(c.String(), part) {
							all = append(all, c)
							break
						}
					}
				}
			}
		}
	}
	return all
}

// strategy returns the strategy of a cell.
func (c cell) strategy() *strategy {
	for i := range compared {
		if compared[i].name == c.Strategy {
			return &compared[i]
		}
	}
	return nil
}

// job returns the request of a cell's job.
func (c cell) job() api.TrainRequest {
	s := c.strategy()
	layers, width, size, train, never, seed := len(fanouts), hidden, batch, epochs, epochs+1, uint64(1)
	r := api.TrainRequest{
		Dataset: c.Graph, Model: c.Model, Layers: &layers, Hidden: &width, Features: "none", Epochs: &train, EvalEvery: &never, Seed: &seed, Strategy: s.name, Set: s.set,
	}
	if !s.whole {
		r.Batch, r.Fanout = &size, fanouts
	}
	return r
}
