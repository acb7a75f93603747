package bench

import (
	"fmt"
	"math"
)

// judgedPiped makes figures of the times. The published averages leave arXiv out.
func judgedPiped(times []Piped) (figures []Figure) {
	var four, all, either []float64
	slower := 0
	best := Piped{}
	for i, p := range times {
		if p.Strategy == "graph" {
			if p.Graph == "Reddit" && p.Model == "gcnii" {
				figures = append(figures, Figure{
					Name: fmt.Sprintf("share of its time that graph waits for others, Reddit, gcnii, %d nodes, %s", p.Nodes, rateOf(p.Rate)), Value: 100 * p.Waiting, Unit: "%",
					Bar: fmt.Sprintf("%.0f %% as published, to 5 points", 100*publishedHalo), Holds: math.Abs(p.Waiting-publishedHalo) <= 0.05,
				})
			}
			continue
		}
		name := fmt.Sprintf("an epoch of %s on %s, %d nodes, %s", p.Model, p.Graph, p.Nodes, p.Strategy)
		figures = append(figures, Figure{Name: name, Value: p.Seconds, Unit: "s", Yardstick: "graph", Ceiling: p.Seconds * p.Ratio, Ratio: 1 / p.Ratio})
		if p.Authors == 0 {
			continue // several ways
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
	return append(figures,
		atLeast(fmt.Sprintf("pipe faster than graph, mean of %d", len(four)), "x", mean(four), publishedTime),
		atLeast(fmt.Sprintf("pipe faster than graph, at best (%s, %s, %d nodes)", best.Graph, best.Model, best.Nodes), "x", best.Ratio, publishedTimeBest),
		Figure{Name: fmt.Sprintf("pipe faster than graph, geometric mean of %d", len(all)), Value: geometric(all), Unit: "x"},
		Figure{Name: fmt.Sprintf("the faster of one way and two, geometric mean of %d", len(either)), Value: geometric(either), Unit: "x"},
		Figure{Name: fmt.Sprintf("cases of %d in which graph is faster", len(all)), Value: float64(slower), Unit: "cases"},
	)
}
