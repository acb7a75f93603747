package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Turned is what it costs grappa that shards pass through its groups: the epochs of one
// super-epoch with the switch that ends it, beside as many without any sweep.
type Turned struct {
	Dataset string  `json:"dataset"`
	Load    string  `json:"load"`
	Epochs  int     `json:"epochs"`
	Swept   float64 `json:"swept_seconds"`
	Still   float64 `json:"still_seconds"`
	Steady  float64 `json:"median_epoch_seconds"` // with sweeping
	Wait    float64 `json:"switch_wait_seconds"`  // of the epoch that begins with the switch
	Bytes   uint64  `json:"switch_bytes"`         // that the switch brought
	Rows    float64 `json:"rows"`                 // of inputs of the first epoch, over those without any sweep
}

// adds is what sweeping adds, as a share of the time without.
func (t *Turned) adds() float64 { return t.Swept/t.Still - 1 }

// switches is what the switch and what is brought for it add to as many epochs at the
// usual pace: what is left of adds is that groups see more, and compute more rows.
func (t *Turned) switches() float64 { return t.Swept/(float64(t.Epochs)*t.Steady) - 1 }

// turn trains a load with and without sweeping, from the first epoch of a super-epoch to
// the first of the next: what that needs is brought while the epochs before are trained,
// which is part of the time.
func (b *bench) turn(ctx context.Context, on host, dataset string, l load, period int) error {
	epochs := period + 1
	t := Turned{Dataset: dataset, Load: l.String(), Epochs: epochs}
	every := append(groupEach(b.cfg.Nodes), set("grappa.period="+strconv.Itoa(period))...)
	for _, still := range []bool{true, false} {
		more := every
		if still {
			more = append(groupEach(b.cfg.Nodes), set("grappa.sweep=off")...)
		}
		j, err := trained(ctx, on, l.ask(dataset, strategy.Grappa, epochs, more...), silent)
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
		t.Swept, t.Steady, t.Wait, t.Bytes = sum, median(seconds), last.Phases.Wait, last.Bytes.Shard
	}
	b.note("  %s, %s: %d epochs take %.1f s, without sweeping %.1f s", dataset, l, epochs, t.Swept, t.Still)
	b.report.Turned = append(b.report.Turned, t)
	return nil
}

// turnFigures judges them.
func turnFigures(all []Turned) (figures []Figure) {
	for i := range all {
		t := &all[i]
		name := fmt.Sprintf("%s, %s: what sweeping adds to %d epochs", t.Dataset, t.Load, t.Epochs)
		figures = append(figures,
			below(name+", beside none", "%", 100*t.adds(), 100*sweptMost),
			below(name+", beside the same shards all along", "%", 100*t.switches(), 100*sweptMost))
	}
	return figures
}
