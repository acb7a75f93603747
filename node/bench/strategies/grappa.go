package strategies

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Isolated is one case of grappa beside centric. Bytes are of all nodes together, in a step
// between switches.
type Isolated struct {
	Model   string `json:"model"`
	Layers  int    `json:"layers"`
	Width   int    `json:"features"`
	Hidden  int    `json:"hidden"`
	Fanout  []int  `json:"fanout"`
	Batch   int    `json:"batch"`
	Weights int    `json:"weights"`

	Centric float64 `json:"centric_epoch_seconds"` // medians
	Grappa  float64 `json:"grappa_epoch_seconds"`
	// Fetching is the share of its time that centric waits for features. Ceiling is how many
	// times faster it would be without. Grappa exceeds it where its groups compute fewer rows.
	Fetching float64 `json:"fetching"`
	Ceiling  float64 `json:"ceiling"`

	Gradient float64 `json:"gradient_bytes"`
	Formula  uint64  `json:"gradient_formula"` // what it should be
	Else     uint64  `json:"other_bytes"`      // features, edges, activations and models: there should be none
	Seen     float64 `json:"edges_seen"`       // in the epochs that were timed
}

// faster returns how many times faster grappa is.
func (c *Isolated) faster() float64 { return c.Centric / c.Grappa }

// measureGrappa times grappa beside centric, and what sweeping costs it.
func measureGrappa(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	l := link(b.run.Nodes)
	b.report.note("times of grappa, and of centric beside it, are of %d nodes with %s and %.2f cores each", b.run.Nodes, shape.FormatRate(l.Rate), l.Cores)
	c, stop, err := startNodes(ctx, b, "isolated", b.run.Nodes, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	on := remote{c.Nodes[0].API}
	for _, width := range widths {
		if err := isolate(ctx, b, on, halfGraph, width, isolatedLoads(width)); err != nil {
			return nil, err
		}
	}
	for _, width := range widths {
		if err := sweepCost(ctx, b, on, halfGraph.named(width, 0), isolatedBeside[width], sweptPeriod); err != nil {
			return nil, err
		}
	}
	return append(isolatedFigures(b.report.Isolated), sweepFigures(b.report.Swept)...), nil
}

// isolate times some loads on a graph with features of a width.
func isolate(ctx context.Context, b *suite, on host, g graphSpec, width int, loads []load) error {
	apart, err := on.GenerateDataset(ctx, g.made(width, 0), func(api.DatasetEvent) {})
	if err != nil {
		return err
	}
	whole, err := on.GenerateDataset(ctx, g.made(width, b.run.Nodes-1), func(api.DatasetEvent) {})
	if err != nil {
		return err
	}
	for _, l := range loads {
		c, err := beside(ctx, on, apart, whole, l, b.run.Nodes)
		if err != nil {
			return fmt.Errorf("%s of width %d: %w", l, width, err)
		}
		b.run.Progress("  %s, width %d: centric %.2f s, of which it fetches for %.0f %%, grappa %.2f s", l, width, c.Centric, 100*c.Fetching, c.Grappa)
		b.report.Isolated = append(b.report.Isolated, c)
	}
	return nil
}

// beside times one case: centric where each node has what it owns, centric where each node
// has everything and fetches nothing, and grappa.
func beside(ctx context.Context, on host, apart, whole api.Dataset, l load, nodes int) (Isolated, error) {
	c := Isolated{Model: l.model, Layers: len(l.fanouts), Width: apart.Features, Hidden: l.hidden, Fanout: l.fanouts, Batch: l.batch}
	j, err := runJob(ctx, on, l.ask(apart.Name, "centric", warmUp+measured), silent)
	if err != nil {
		return c, err
	}
	c.Centric = medianEpoch(j)
	if j, err = runJob(ctx, on, l.ask(whole.Name, "centric", warmUp+measured), silent); err != nil {
		return c, err
	}
	c.Fetching = max(0, 1-medianEpoch(j)/c.Centric)
	c.Ceiling = 1 / (1 - c.Fetching)
	if j, err = runJob(ctx, on, l.ask(apart.Name, "grappa", warmUp+measured, groupEach(nodes)...), silent); err != nil {
		return c, err
	}
	c.Grappa = medianEpoch(j)
	e := j.History[len(j.History)-1]
	c.Gradient, c.Seen = float64(e.Bytes.Gradient)/float64(stepsOf(apart, l)), e.Seen
	for _, e := range j.History {
		c.Else += e.Bytes.Feature + e.Bytes.Topology + e.Bytes.Activation + e.Bytes.Model
	}
	if c.Weights, err = l.weights(apart); err != nil {
		return c, err
	}
	c.Formula = reduceBytes(c.Weights, nodes)
	return c, nil
}

// groupEach gives each node a group of its own, as the default does on four.
func groupEach(nodes int) []api.Setting { return set("grappa.groups=" + strconv.Itoa(nodes)) }

// weights returns how many weights a load's model has.
func (l load) weights(d api.Dataset) (int, error) {
	spec := nn.Defaults(l.model)
	spec.Layers, spec.Hidden = len(l.fanouts), l.hidden
	if l.model == "gat" {
		spec.Heads = 1 // as asked for
	}
	m, err := nn.New(spec, d.Features, d.Classes)
	if err != nil {
		return 0, fmt.Errorf("count the weights of %s: %w", l, err)
	}
	return m.Size(), nil
}

// reduceBytes returns what all nodes send to add up so many weights, by formula.
func reduceBytes(weights, nodes int) uint64 {
	all := exchange.VolumeOf(nodes, weights, 4, nil).All
	return all.Bytes[peer.Gradient]
}

// isolatedFigures makes the figures of the cases.
func isolatedFigures(cases []Isolated) (figures []bench.Figure) {
	var faster, ceilings []float64
	leaks, wrong, best := uint64(0), 0, 0.0
	for i := range cases {
		c := &cases[i]
		faster, ceilings = append(faster, c.faster()), append(ceilings, c.Ceiling)
		best = max(best, c.faster())
		leaks += c.Else
		if c.Gradient != float64(c.Formula) {
			wrong++
		}
	}
	return []bench.Figure{
		bench.AtLeast("grappa faster than centric, mean of all cases", stats.Mean(faster), isolatedMean),
		bench.AtLeast("grappa faster than centric, geometric mean", stats.Geometric(faster), isolatedMean),
		{Name: "the same without fetching, geometric mean of 1/(1 - share)", Value: stats.Geometric(ceilings), Unit: "x"},
		{Name: "grappa faster than centric, at best", Value: best, Unit: "x", Baseline: "published", Ceiling: isolatedBest, Ratio: best / isolatedBest},
		{Name: "bytes that grappa's steps send beside gradients", Value: float64(leaks), Unit: "B", Bar: "exactly 0 B", Holds: leaks == 0},
		{Name: "cases whose gradients take other bytes than the formula's", Value: float64(wrong), Unit: "cases", Bar: "exactly 0 cases", Holds: wrong == 0},
	}
}

// isolatedFanouts are the published ones, of models of three and four layers.
var isolatedFanouts = [][]int{{15, 10, 5}, {20, 15, 10, 5}}

// Those models have the published width, and a quarter of the published batch on each of
// four nodes.
const (
	isolatedHidden = 128
	isolatedBatch  = 1024
)

// isolatedBeside has for each width of features a case with other fan-outs and narrower
// layers.
var isolatedBeside = map[int]load{
	widths[0]: {"gcn", 16, []int{5, 5, 5, 5}, 512},
	widths[1]: {"sage", 16, []int{10, 10, 10}, 512},
}

// isolatedLoads returns all cases with features of a width.
func isolatedLoads(width int) (loads []load) {
	for _, model := range timedModels {
		for _, fanouts := range isolatedFanouts {
			loads = append(loads, load{model, isolatedHidden, fanouts, isolatedBatch})
		}
	}
	return append(loads, isolatedBeside[width])
}

// How much faster than others grappa is as published: on average, which is the bar, and at
// best.
const (
	isolatedMean = 4
	isolatedBest = 13
)

// Sweeping is timed over one super-epoch and the switch that ends it, with the cases of
// isolatedBeside: a switch weighs most where epochs are short.
const (
	sweptPeriod = 50
	sweptMost   = 0.1 // of the time without
)

// SweepCost is what it costs grappa that shards pass through its groups: the epochs of one
// super-epoch with the switch that ends it, beside as many without any sweep.
type SweepCost struct {
	Dataset string  `json:"dataset"`
	Load    string  `json:"load"`
	Epochs  int     `json:"epochs"`
	Swept   float64 `json:"swept_seconds"`
	Still   float64 `json:"still_seconds"`
	Steady  float64 `json:"median_epoch_seconds"` // with sweeping
	Wait    float64 `json:"switch_wait_seconds"`  // of the epoch that begins with the switch
	Bytes   uint64  `json:"switch_bytes"`         // fetched for the switch
	Rows    float64 `json:"rows"`                 // of inputs of the first epoch, over those without any sweep
}

// adds returns what sweeping adds, as a share of the time without.
func (t *SweepCost) adds() float64 { return t.Swept/t.Still - 1 }

// switches returns what the switch and the fetching for it add to as many epochs of median
// length. The rest of adds is that groups see more, and compute more rows.
func (t *SweepCost) switches() float64 { return t.Swept/(float64(t.Epochs)*t.Steady) - 1 }

// sweepCost trains a load with and without sweeping, from the first epoch of a super-epoch
// to the first of the next. The latter's shards are fetched while the epochs before are
// trained, which is part of the time.
func sweepCost(ctx context.Context, b *suite, on host, dataset string, l load, period int) error {
	epochs := period + 1
	t := SweepCost{Dataset: dataset, Load: l.String(), Epochs: epochs}
	every := append(groupEach(b.run.Nodes), set("grappa.period="+strconv.Itoa(period))...)
	for _, still := range []bool{true, false} {
		more := every
		if still {
			more = append(groupEach(b.run.Nodes), set("grappa.sweep=off")...)
		}
		j, err := runJob(ctx, on, l.ask(dataset, "grappa", epochs, more...), silent)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", l, dataset, err)
		}
		var seconds []float64
		sum := 0.0
		for _, e := range j.History {
			seconds = append(seconds, e.Seconds)
			sum += e.Seconds
		}
		rows := float64(j.History[0].Rows.Local)
		if still {
			t.Still, t.Rows = sum, rows
			continue
		}
		last := j.History[epochs-1]
		t.Rows = rows / t.Rows
		t.Swept, t.Steady, t.Wait, t.Bytes = sum, stats.Median(seconds), last.Phases.Wait, last.Bytes.Shard
	}
	b.run.Progress("  %s, %s: %d epochs take %.1f s, without sweeping %.1f s", dataset, l, epochs, t.Swept, t.Still)
	b.report.Swept = append(b.report.Swept, t)
	return nil
}

// sweepFigures makes the figures of sweeping.
func sweepFigures(all []SweepCost) (figures []bench.Figure) {
	for i := range all {
		t := &all[i]
		name := fmt.Sprintf("%s, %s: what sweeping adds to %d epochs", t.Dataset, t.Load, t.Epochs)
		figures = append(figures,
			bench.Below(name+", beside none", "%", 100*t.adds(), 100*sweptMost),
			bench.Below(name+", beside the same shards all along", "%", 100*t.switches(), 100*sweptMost))
	}
	return figures
}
