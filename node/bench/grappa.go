package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Isolated is one case in which grappa is timed beside centric. Bytes are of all nodes
// together, of a step between switches.
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
	// Fetching is the share of its time that centric waits for features, and Ceiling how
	// many times faster it would be without: grappa gets beyond it where its groups compute
	// fewer rows.
	Fetching float64 `json:"fetching"`
	Ceiling  float64 `json:"ceiling"`

	Gradient float64 `json:"gradient_bytes"`
	Formula  uint64  `json:"gradient_formula"` // what it should be
	Else     uint64  `json:"other_bytes"`      // features, edges, activations and models: there should be none
	Seen     float64 `json:"edges_seen"`       // in the epochs that were timed
}

// faster is how many times.
func (c *Isolated) faster() float64 { return c.Centric / c.Grappa }

// isolated times grappa beside centric, and what sweeping costs it.
func (b *bench) isolated(ctx context.Context) (figures []Figure, err error) {
	l := link(b.cfg.Nodes)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("times of grappa, and of centric beside it, are of %d nodes with %s and %.2f cores each", b.cfg.Nodes, shape.FormatRate(l.Rate), l.Cores))
	c, stop, err := b.crew(ctx, "isolated", b.cfg.Nodes, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	on := remote{c.Nodes[0].API}
	for _, width := range widths {
		if err := b.isolate(ctx, on, halved, width, isolatedLoads(width)); err != nil {
			return nil, err
		}
	}
	for _, width := range widths {
		if err := b.turn(ctx, on, halved.named(width, 0), isolatedBeside[width], sweptPeriod); err != nil {
			return nil, err
		}
	}
	return append(isolatedFigures(b.report.Isolated), turnFigures(b.report.Turned)...), nil
}

// isolate times some loads on a graph with features of a width.
func (b *bench) isolate(ctx context.Context, on host, g meadow, width int, loads []load) error {
	apart, err := on.GenerateDataset(ctx, g.made(width, 0), func(api.DatasetEvent) {})
	if err != nil {
		return err
	}
	whole, err := on.GenerateDataset(ctx, g.made(width, b.cfg.Nodes-1), func(api.DatasetEvent) {})
	if err != nil {
		return err
	}
	for _, l := range loads {
		c, err := beside(ctx, on, apart, whole, l, b.cfg.Nodes)
		if err != nil {
			return fmt.Errorf("%s of width %d: %w", l, width, err)
		}
		b.note("  %s, width %d: centric %.2f s, of which it fetches for %.0f %%, grappa %.2f s", l, width, c.Centric, 100*c.Fetching, c.Grappa)
		b.report.Isolated = append(b.report.Isolated, c)
	}
	return nil
}

// beside times one case: centric with each node what it owns, centric with each node all,
// which is what it takes without fetching, and grappa.
func beside(ctx context.Context, on host, apart, whole api.Dataset, l load, nodes int) (Isolated, error) {
	c := Isolated{Model: l.model, Layers: len(l.fanouts), Width: apart.Features, Hidden: l.hidden, Fanout: l.fanouts, Batch: l.batch}
	j, err := trained(ctx, on, l.ask(apart.Name, "centric", warmUp+measured), silent)
	if err != nil {
		return c, err
	}
	c.Centric = usual(j)
	if j, err = trained(ctx, on, l.ask(whole.Name, "centric", warmUp+measured), silent); err != nil {
		return c, err
	}
	c.Fetching = max(0, 1-usual(j)/c.Centric)
	c.Ceiling = 1 / (1 - c.Fetching)
	if j, err = trained(ctx, on, l.ask(apart.Name, strategy.Grappa, warmUp+measured, groupEach(nodes)...), silent); err != nil {
		return c, err
	}
	c.Grappa = usual(j)
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

// weights is how many weights a load's model has.
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

// reduceBytes is what adding up so many weights takes that all nodes send, each number
// 2(N-1)/N times: two rounds of questions, of which the first says which columns and
// brings a note beside them.
func reduceBytes(weights, nodes int) uint64 {
	const columns, note = 16, 16
	questions := nodes * (nodes - 1)
	return uint64(2*(nodes-1)*4*weights + questions*(2*(strategy.QueryFraming+strategy.AnswerFraming)+columns+note))
}

// isolatedFigures judges the cases.
func isolatedFigures(cases []Isolated) (figures []Figure) {
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
	return []Figure{
		atLeast("grappa faster than centric, mean of all cases", mean(faster), isolatedMean),
		atLeast("grappa faster than centric, geometric mean", geometric(faster), isolatedMean),
		{Name: "the same without fetching, geometric mean of 1/(1 - share)", Value: geometric(ceilings), Unit: "x"},
		{Name: "grappa faster than centric, at best", Value: best, Unit: "x", Yardstick: "published", Ceiling: isolatedBest, Ratio: best / isolatedBest},
		{Name: "bytes that grappa's steps send beside gradients", Value: float64(leaks), Unit: "B", Bar: "exactly 0 B", Holds: leaks == 0},
		{Name: "cases whose gradients take other bytes than the formula's", Value: float64(wrong), Unit: "cases", Bar: "exactly 0 cases", Holds: wrong == 0},
	}
}
