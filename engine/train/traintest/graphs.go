package traintest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Cut returns the shards of a source, in a folder of the test.
func Cut(t testing.TB, src graph.Source, shards int) []*graph.Shard {
	t.Helper()
	return enginetest.Cut(t, src, shards, "")
}

// CutBy is Cut by one of the partitioners.
func CutBy(t testing.TB, src graph.Source, shards int, partitioner string) []*graph.Shard {
	t.Helper()
	return enginetest.Cut(t, src, shards, partitioner)
}

// FromFile returns the shards of a graph in a file.
func FromFile(t testing.TB, path string, shards int) []*graph.Shard {
	t.Helper()
	return enginetest.FromFile(t, path, shards)
}

// CoraShards returns the shards of Cora.
func CoraShards(t testing.TB) []*graph.Shard {
	t.Helper()
	return enginetest.Cora(t)
}

// Communities returns the shards of a small graph with dense features.
func Communities(t testing.TB, vertices int) []*graph.Shard {
	t.Helper()
	return enginetest.Communities(t, vertices)
}

// MustRun trains on one node and returns the result and all epochs. It fails the test if
// training fails.
func MustRun(t testing.TB, r recipe.Recipe, shards []*graph.Shard, o train.Options) (train.Result, []trained.Epoch) {
	t.Helper()
	var all []trained.Epoch
	o.Strategies = orAll(o.Strategies)
	before := o.Report
	o.Report = func(e trained.Epoch) {
		all = append(all, e)
		if before != nil {
			before(e)
		}
	}
	result, err := train.Run(t.Context(), r, shards, o)
	if err != nil {
		t.Fatal(err)
	}
	return result, all
}

// Hashes returns the hashes of the weights after each epoch, one a line.
func Hashes(all []trained.Epoch) string {
	var text strings.Builder
	for _, e := range all {
		fmt.Fprintf(&text, "%d:%s\n", e.Epoch, e.Hash)
	}
	return text.String()
}

// orAll returns s, or all strategies if it is nil.
func orAll(s train.Strategies) train.Strategies {
	if s == nil {
		return strategies.All
	}
	return s
}
