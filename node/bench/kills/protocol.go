// Package kills measures what the loss of a node costs a job. Three nodes, each a process,
// share jobs of every strategy; one is killed with -9, or asked to stop with SIGTERM, at a
// random moment. What the others lose, when they notice, when they go on, and whether they
// come to the same weights is a row of the table.
package kills

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/api"
)

// This file is the protocol. It was fixed before anything was measured.
//
//   - A graph has a copy of each shard on every node, so that any node may be lost.
//   - A job of each strategy is trained undisturbed first. Then the same job is disturbed
//     once for each event: the signal comes when it says that between a tenth and seven tenths
//     of its epochs are done, and the node is one of the job's. Both follow from the strategy
//     and the event's number.
//   - A job of single has one node, which nobody replaces: it is started again at once, and
//     nothing is to be noticed. What local learns depends on the nodes, so that its weights are
//     not compared.
//   - What a recipe would take from the nodes that are there when a job is created, such as
//     the number of groups, it names. Else a node that is away for a moment makes another job.
//   - A step is lost if it was reported before the signal and is made again. Strategies that
//     train on the whole graph have one step an epoch.
//   - Noticing is the time from the signal until the plan gives the job to the others; going
//     on, until one of them reports a step. For single that is the node itself, and its start
//     counts.
//   - The node is started again after the job, and the next begins when all nodes see each
//     other, vote, and own shards.

const (
	nodes  = 3
	events = 9 // of each signal and strategy: 54 of each signal in all
	epochs = 60
)

// The bars.
const (
	mostSteps = 1   // lost, of one epoch with strategies that train on the whole graph
	mostNotes = 3.0 // seconds until a killed node is noticed
	mostRests = 8.0 // seconds until the next step
)

func dataset() api.GenerateRequest {
	copies := nodes - 1
	return api.GenerateRequest{
		Name: "kills", Kind: "sbm", Vertices: 24_000, Edges: 240_000, Features: 32, Classes: 4,
		DatasetOptions: api.DatasetOptions{Shards: 12, Replicas: &copies, Seed: 1},
	}
}

// An event is one signal to one node of a job.
type event struct {
	Strategy string `json:"strategy"`
	Signal   string `json:"signal"` // kill or term
	Number   int    `json:"number"`
}

func (e event) String() string { return fmt.Sprint(e.Strategy, " ", e.Signal, " ", e.Number) }

var signals = map[string]syscall.Signal{"kill": syscall.SIGKILL, "term": syscall.SIGTERM}

// alone reports whether the job has one node.
func (e event) alone() bool { return e.Strategy == "single" }

// compares reports whether what the job learns does not depend on the nodes.
func (e event) compares() bool { return e.Strategy != "local" }

// chance returns which of the job's nodes is hit, and after which share of its epochs.
func (e event) chance() (node int, share float64) {
	name := fnv.New64a()
	_, _ = name.Write([]byte(e.String())) // never fails
	draws := rand.New(rand.NewPCG(name.Sum64(), 1))
	return draws.IntN(nodes), 0.1 + 0.6*draws.Float64()
}

// all lists the events whose names have one of these parts.
func all(rows string, quick bool) (list []event) {
	each := events
	if quick {
		each = 1
	}
	for _, s := range strategies.Computed() {
		for n := range each {
			for _, signal := range []string{"kill", "term"} {
				e := event{s, signal, n}
				if rows == "" || slices.ContainsFunc(strings.Split(rows, ","), func(part string) bool { return strings.Contains(e.String(), part) }) {
					list = append(list, e)
				}
			}
		}
	}
	return list
}

// ask returns the job of a strategy.
func ask(strategy string) api.TrainRequest {
	layers, hidden, batch, total, never, seed := 2, 16, 1500, epochs, epochs+1, uint64(1)
	r := api.TrainRequest{
		Dataset: dataset().Name, Model: "sage", Layers: &layers, Hidden: &hidden, Batch: &batch, Fanout: []int{5, 5}, Epochs: &total, EvalEvery: &never,
		Seed: &seed, Strategy: strategy, Deterministic: strategy != "local",
	}
	if strategy == "pipe" || strategy == "graph" {
		layers, batch = nodes, 0
		r.Model, r.Fanout, r.Batch = "gcn", nil, nil
	}
	switch strategy {
	case "graph": // its bits depend on the ways, which would be as many as nodes are left
		r.Set = []api.Setting{{Key: "pipe.ways", Value: fmt.Sprint(nodes)}}
	case "grappa": // and those of this on the groups
		r.Set = []api.Setting{{Key: "grappa.groups", Value: fmt.Sprint(nodes)}}
	}
	return r
}
