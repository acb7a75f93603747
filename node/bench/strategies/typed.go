package strategies

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// What is trained on a graph with types: an R-GCN, on ogbn-mag's shape with edges both ways.
var (
	typedScale = 0.05
	typedLoad  = load{"rgcn", 64, []int{10, 10}, 1024}
)

const (
	typedPreset = "mag"
	typedEpochs = 10
	// typedBar is the share of the test papers that must be right. Four in five have the class
	// that their neighbours speak of.
	typedBar = 0.4
)

// typedGraph returns the request that generates the graph, without copies of shards.
func typedGraph(scale float64) api.GenerateRequest {
	copies := 0
	return api.GenerateRequest{
		Name: typedPreset, Preset: typedPreset, Scale: scale, DatasetOptions: api.DatasetOptions{Replicas: &copies, Seed: 1, Undirected: true},
	}
}

// measureTyped trains on a graph with types by centric and leap, on nodes in this process.
func measureTyped(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	f := fleet.New(filepath.Join(b.run.Dir, "typed"), b.run.Version)
	defer func() { err = errors.Join(err, f.Stop()) }()
	for range b.run.Nodes {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "all nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	return trainTyped(ctx, b, f.Nodes[0].API(), typedScale, typedLoad, typedEpochs, typedBar)
}

// trainTyped counts what centric and leap send in the first epoch, and finds what leap learns in
// all of them.
func trainTyped(ctx context.Context, b *suite, on host, scale float64, l load, epochs int, bar float64) (figures []bench.Figure, err error) {
	d, err := on.GenerateDataset(ctx, typedGraph(scale), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("ogbn-mag's shape, %g of its size", scale)
	var feature []float64
	accuracy := 0.0
	for _, way := range []string{"centric", "leap"} {
		b.run.Progress("  %s: %s by %s", name, l, way)
		long, none := epochs, 0.0
		if way == "centric" {
			long = 1 // it learns what leap does
		}
		r := l.ask(d.Name, way, long)
		r.EvalEvery, r.Dropout, r.WeightDecay = r.Epochs, &none, &none
		j, err := runJob(ctx, on, r, silent)
		if err != nil {
			return nil, err
		}
		e := j.History[0]
		b.report.Sent = append(b.report.Sent, Sent{
			Graph: name, Width: d.Features, Fanout: l.fanouts, Batch: l.batch, Strategy: way, Steps: stepsOf(d, l), Rows: e.Rows, Requests: e.Requests, Bytes: e.Bytes,
		})
		feature = append(feature, float64(e.Bytes.Feature)/1e6)
		last := j.History[len(j.History)-1].TestAccuracy
		if last == nil {
			return nil, fmt.Errorf("job %s has no accuracy after its last epoch", j.ID)
		}
		accuracy = *last
	}
	about := fmt.Sprintf("%s, %s", name, l)
	return []bench.Figure{
		bench.Against("feature bytes of leap, "+about, "MB", feature[1], "centric", feature[0], bench.Most(1)),
		{
			Name: fmt.Sprintf("test accuracy after %d epochs of leap, %s", epochs, about), Value: 100 * accuracy, Unit: "%",
			Bar: fmt.Sprintf("at least %g %%", 100*bar), Holds: accuracy >= bar,
		},
	}, nil
}
