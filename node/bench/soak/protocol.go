// Package soak measures whether a mesh that is always at work goes on taking what it takes.
// Three nodes, each a process, train small jobs, make and import graphs, and see a fourth node
// come and go, round after round. After each round their memory, goroutines, descriptors and
// disk are read, and the last rounds are compared with early ones.
package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/api"
)

// This file is the protocol. It was fixed before anything was measured.
//
//   - A graph stays. In each round a job of the next strategy trains on it and is removed; a
//     graph is generated, or every third time imported from files, and removed; and in every
//     fourth round a node joins, waits until it owns shards, and leaves.
//   - After a round nothing is asked for some seconds. Then each of the three nodes is read.
//   - Compared are the medians of the second and of the last quarter of all rounds. In the first,
//     caches and histories fill.

const (
	nodes    = 3
	epochs   = 4
	rest     = 3 * time.Second
	joins    = 4 // every how many rounds
	imports  = 3
	quick    = 8 // rounds to try it out
	patience = 2 * time.Minute
)

// The bars: how much more the last quarter may take than the second.
const (
	mostMemory      = 16.0 // MiB
	mostGoroutines  = 8.0
	mostDescriptors = 8.0
	mostDisk        = 32.0 // MiB
)

func stays() api.GenerateRequest {
	copies := nodes // with a guest, too, each node holds all: single needs that
	return api.GenerateRequest{
		Name: "stays", Kind: "sbm", Vertices: 8_000, Edges: 80_000, Features: 32, Classes: 4,
		DatasetOptions: api.DatasetOptions{Shards: 12, Replicas: &copies, Seed: 1},
	}
}

// goes is the graph that a round generates.
func goes(round int) api.GenerateRequest {
	g := stays()
	g.Name, g.Seed = fmt.Sprint("goes-", round), uint64(round)
	return g
}

// strategy returns that of a round's job.
func strategy(round int) string {
	names := strategies.Computed()
	return names[round%len(names)]
}

func job(round int) api.TrainRequest {
	layers, hidden, batch, total, never, seed := 2, 16, 1000, epochs, epochs+1, uint64(round)
	r := api.TrainRequest{
		Dataset: stays().Name, Model: "sage", Layers: &layers, Hidden: &hidden, Batch: &batch, Fanout: []int{5, 5}, Epochs: &total, EvalEvery: &never,
		Seed: &seed, Strategy: strategy(round),
	}
	if r.Strategy == "pipe" || r.Strategy == "graph" {
		layers = nodes
		r.Model, r.Fanout, r.Batch = "gcn", nil, nil
	}
	return r
}

// files writes the graph that is imported, and returns its folder.
func files(dir string) (string, error) {
	const vertices, edges, columns = 2_000, 20_000, 8
	draws := rand.New(rand.NewPCG(1, 1))
	var pairs, rows, labels strings.Builder
	for range edges {
		fmt.Fprintf(&pairs, "%d,%d\n", draws.IntN(vertices), draws.IntN(vertices))
	}
	for v := range vertices {
		fmt.Fprint(&rows, v)
		for range columns {
			fmt.Fprintf(&rows, ",%.3f", draws.Float64())
		}
		fmt.Fprintln(&rows)
		fmt.Fprintf(&labels, "%d,%d\n", v, draws.IntN(4))
	}
	folder := filepath.Join(dir, "source")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("write a graph to import: %w", err)
	}
	for name, text := range map[string]*strings.Builder{"edges.csv": &pairs, "features.csv": &rows, "labels.csv": &labels} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text.String()), 0o600); err != nil {
			return "", fmt.Errorf("write a graph to import: %w", err)
		}
	}
	return folder, nil
}
