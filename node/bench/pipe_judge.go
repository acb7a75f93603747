package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// judgedPiped makes figures of the times. The published averages leave arXiv out.
func judgedPiped(times []Piped) (figures []Figure) {
	var four, all, either []float64
	slower := 0
	best := Piped{}
	for i, p := range times {
		if p.Strategy == strategy.Graph {
			if p.Graph == "Reddit" && p.Model == "gcnii" {
				figures = append(figures, Figure{
					Name: fmt.Sprintf("share of its time that graph waits for others, Reddit, gcnii, %d nodes, %s", p.Nodes, rateOf(p.Rate)), Value: 100 * p.Waiting, Unit: "%",
					Bar: fmt.Sprintf("%.0f %% as published, to 5 points", 100*publishedHalo), Holds: math.Abs(p.Waiting-publishedHalo) <= 0.05,
				})
			}
			continue
		}
		if !p.Chosen {
			name := fmt.Sprintf("an epoch of %s on %s, %d nodes, %s", p.Model, p.Graph, p.Nodes, p.Strategy)
			figures = append(figures, Figure{Name: name, Value: p.Seconds, Unit: "s", Yardstick: "graph", Ceiling: p.Seconds * p.Ratio, Ratio: 1 / p.Ratio})
		}
		if p.Authors == 0 {
			continue // several ways, or chosen ones
		}
		if p.Ratio > best.Ratio {
			best = p
		}
		if p.Nodes != publishedNodes/2 {
			continue
		}
		all, either = append(all, p.Ratio), append(either, max(p.Ratio, times[i+1].Ratio))
		if p.Graph != "arXiv" {
			four = append(four, p.Ratio)
		}
		if p.Ratio < 1 {
			slower++
		}
	}
	figures = append(figures,
		atLeast(fmt.Sprintf("pipe faster than graph, mean of %d", len(four)), mean(four), publishedTime),
		atLeast(fmt.Sprintf("pipe faster than graph, at best (%s, %s, %d nodes)", best.Graph, best.Model, best.Nodes), best.Ratio, publishedTimeBest),
		Figure{Name: fmt.Sprintf("pipe faster than graph, geometric mean of %d", len(all)), Value: geometric(all), Unit: "x"},
		Figure{Name: fmt.Sprintf("the faster of one way and two, geometric mean of %d", len(either)), Value: geometric(either), Unit: "x"},
		Figure{Name: fmt.Sprintf("cases of %d in which graph is faster", len(all)), Value: float64(slower), Unit: "cases"},
	)
	return append(figures, judgedChoices(times)...)
}

// judgedChoices compares what nodes predict with what an epoch takes, and what they choose
// with the best that was tried of pipe.
func judgedChoices(times []Piped) (figures []Figure) {
	var off, over []float64
	var far, poor Piped
	least := 0.0 // of the case
	for _, p := range times {
		if p.Strategy == strategy.Graph {
			least = math.Inf(1)
		} else {
			least = min(least, p.Seconds)
		}
		if p.Predicted > 0 {
			if off = append(off, math.Abs(p.Predicted/p.Seconds-1)); off[len(off)-1] >= slices.Max(off) {
				far = p
			}
		}
		if p.Chosen {
			if over = append(over, p.Seconds/least); over[len(over)-1] >= slices.Max(over) {
				poor = p
			}
		}
	}
	if len(off) > 0 {
		figures = append(figures,
			below(fmt.Sprintf("predictions are wrong by, at most (%s, %s, %d nodes, %s)", far.Graph, far.Model, far.Nodes, far.Strategy), "%", 100*slices.Max(off), 20),
			Figure{Name: fmt.Sprintf("predictions are wrong by, mean of %d", len(off)), Value: 100 * mean(off), Unit: "%"})
	}
	if len(over) > 0 {
		figures = append(figures,
			Figure{Name: fmt.Sprintf("what is chosen takes of the best, at most (%s, %s, %d nodes, %s)", poor.Graph, poor.Model, poor.Nodes, poor.Strategy), Value: slices.Max(over), Unit: "x",
				Bar: "at most 1.1 x", Holds: slices.Max(over) <= 1.1},
			Figure{Name: fmt.Sprintf("what is chosen takes of the best, mean of %d", len(over)), Value: mean(over), Unit: "x"})
	}
	return figures
}
