package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench/strategies"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

func papers() []paper { return []paper{leapgnn(), grappa(), gnnpipe()} }

// times says a ratio in words.
func times(value float64, of string) found {
	return found{value, fmt.Sprintf("%.2fx, %s", value, of)}
}

// ratios returns one ratio of each case, and their number in words.
func ratios(all []float64, what string) (mean, best found) {
	if len(all) == 0 {
		return found{}, found{}
	}
	n := fmt.Sprintf("%d %s", len(all), what)
	return times(stats.Geometric(all), "geometric mean of "+n), times(slices.Max(all), "best of "+n)
}

// leapgnn returns the claims of LeapGNN (FAST '25, HopGNN in preprints).
func leapgnn() paper {
	// over returns how many times as long as leap another strategy takes, in each case. p3 counts
	// with the fastest of its ways.
	over := func(m *measured, strategy string) (all []float64) {
		type model struct {
			name          string
			width, hidden int
		}
		leap, other := map[model]float64{}, map[model]float64{}
		var order []model
		for _, t := range m.Times {
			of := model{t.Model, t.Width, t.Hidden}
			switch {
			case t.Seconds == 0:
			case t.Strategy == "leap":
				leap[of] = t.Seconds
			case t.Strategy == strategy && (other[of] == 0 || t.Seconds < other[of]):
				if other[of] == 0 {
					order = append(order, of)
				}
				other[of] = t.Seconds
			}
		}
		for _, of := range order {
			if leap[of] > 0 {
				all = append(all, other[of]/leap[of])
			}
		}
		return all
	}
	rung := func(m *measured, name string) *strategies.LadderRow {
		at := slices.IndexFunc(m.Ladder, func(r strategies.LadderRow) bool { return r.Name == name })
		if at < 0 {
			return &strategies.LadderRow{}
		}
		return &m.Ladder[at]
	}
	const centric, groups, gathered = "centric", "+micrographs", "+pre-gathering"
	return paper{
		name: "leapgnn", title: "LeapGNN: claims and what came of them", parts: []string{"time"}, means: []string{"accuracy"},
		setting: "The authors had four servers with an A100 each and 10 Gbit/s, graphs from 169 thousand vertices and METIS. " +
			"Ours are four processes with 0.45 of a core each and links of 400 Mbit/s, a planted graph of communities, and our own cut. " +
			"Their DGL gathers rows for a batch that is cut without regard to where vertices lie: that is `centric`. P3 counts with the fastest of its settings. Nobody keeps rows from step to step, and there are no copies of shards.",
		claims: []claim{
			{
				what: "epochs faster than with DGL, on average", published: "1.3x to 3.1x", drawn: 1.3, judge: atLeast(1.3),
				formula: "1 / (1 - f + f / r), where fetching takes f of DGL's time and r times fewer rows leave their node: 1.3x for 44 % and 2.1, 3.4x for 83 % and 6.8",
				ours:    func(m *measured) found { mean, _ := ratios(over(m, centric), "cases"); return mean },
			},
			{
				what: "epochs faster than with DGL, at best", published: "3.1x", drawn: 3.1, judge: atLeast(3.1),
				formula: "the same: 3.4x",
				ours:    func(m *measured) found { _, best := ratios(over(m, centric), "cases"); return best },
			},
			{
				what: "epochs faster than with P3, at worst", published: "1.2x", drawn: 1.2, judge: atLeast(1.2),
				formula: "a step of 1000 seeds and 25, 10 neighbours needs 188,339 rows of 100 numbers: of those leap sends 11 % (their co-location on Products), 8.3 MB, and P3 2(N-1) rows of 16 numbers for each of 11,000 targets, 4.2 MB",
				ours: func(m *measured) found {
					all := over(m, "p3")
					if len(all) == 0 {
						return found{}
					}
					return times(slices.Min(all), fmt.Sprintf("worst of %d cases", len(all)))
				},
			},
			{
				what: "epochs faster than with P3, at best", published: "4.2x", drawn: 4.2, judge: atLeast(4.2),
				formula: "the same with rows of 128 numbers: 8.3 MB beside 34 MB, 4.1x",
				ours:    func(m *measured) found { _, best := ratios(over(m, "p3"), "cases"); return best },
			},
			{
				what: "rows that leave their node, fewer by grouping seeds where they lie", published: "53 % fewer misses: 2.1x", drawn: 1 / (1 - 0.53), judge: atLeast(1 / (1 - 0.53)),
				formula: "(1 - 1/4) / (1 - co-location on four servers): 2.4x on Arxiv (0.69), 6.8x on Products (0.89)",
				ours: func(m *measured) found {
					before, after := rung(m, centric), rung(m, groups)
					if after.Remote == 0 {
						return found{}
					}
					return times(before.Remote/after.Remote, "the planted graph")
				},
			},
			{
				what: "requests, fewer by pre-gathering", published: "1.9x", drawn: 1.9, judge: atLeast(1.9),
				formula: "at most as many times fewer as there are time steps: 4x on four servers",
				ours: func(m *measured) found {
					before, after := rung(m, groups), rung(m, gathered)
					if after.Requests == 0 {
						return found{}
					}
					return times(before.Requests/after.Requests, "the planted graph")
				},
			},
			{
				what: "share of DGL's time that is spent fetching", published: "44 to 83 %", judge: within(44, 83),
				formula: "none: it depends on the pace of their processors",
				ours: func(m *measured) found {
					var all []float64
					for _, t := range m.Times {
						if t.Strategy == centric {
							all = append(all, 100*t.Fetching)
						}
					}
					if len(all) == 0 {
						return found{}
					}
					return found{stats.Mean(all), fmt.Sprintf("%.0f %%, mean of %d cases (%.0f to %.0f)", stats.Mean(all), len(all), slices.Min(all), slices.Max(all))}
				},
			},
			{
				what: "accuracy as with DGL", published: "within 0.1 points", judge: atMost(0.1),
				formula: "0 points: the gradient is the same",
				ours:    func(m *measured) found { return below(shared(m.means)) },
			},
		},
		why: "Gains over `centric` depend on how much of a seed's neighbourhood lies in its own part, which the planted graph has more of than Arxiv and less than Products, and on how slow the link is beside the processor. " +
			"P3 sends hidden rows in place of features, so it wins where features are wide and hidden rows narrow, by formula and here, whatever the paper's table has. " +
			"That models travel brings nothing where every step ends with a sum of gradients: `leap` lets them stay, and moves them only on request. Micrographs, pre-gathering and merging are what the gains come from.",
	}
}

// grappa returns the claims of Grappa (arXiv 2602.01872).
func grappa() paper {
	faster := func(m *measured) (all []float64) {
		for _, c := range m.Isolated {
			if c.Grappa > 0 {
				all = append(all, c.Centric/c.Grappa)
			}
		}
		return all
	}
	return paper{
		name: "grappa", title: "Grappa: claims and what came of them", parts: []string{"grappa"}, means: []string{"ablation"},
		setting: "The authors trained on up to 64 workers with graphs up to papers100M; on what links is not known to us. " +
			"Ours are four processes with 0.45 of a core each and links of 400 Mbit/s on a planted graph, and accuracies on five small real graphs. The baseline is `centric`, which draws and gathers as DGL does, cuts batches without regard to where vertices lie, and keeps no rows. DistDGL, which deals seeds where they lie, is timed [elsewhere](distributed.md).",
		claims: []claim{
			{
				what: "epochs faster, on average", published: "4x", drawn: 4, judge: atLeast(4),
				formula: "as many times as 1 / (1 - the share of time that fetching takes), where groups compute as much: 4x for 75 %",
				ours:    func(m *measured) found { mean, _ := ratios(faster(m), "cases"); return mean },
			},
			{
				what: "epochs faster, at best", published: "13x", drawn: 13, judge: atLeast(13),
				formula: "the same: 12.5x for 92 %",
				ours:    func(m *measured) found { _, best := ratios(faster(m), "cases"); return best },
			},
			{
				what: "within a step only gradients travel", published: "0 bytes of anything else", judge: func(ours float64) verdict {
					if ours == 0 {
						return reproduced
					}
					return not
				},
				formula: "GraphSAGE with three layers of 128 on Products: 0.28 MB of weights, 2(N-1)/N of them a step, whatever the fan-outs",
				ours: func(m *measured) found {
					if len(m.Isolated) == 0 {
						return found{}
					}
					other, wrong := uint64(0), 0
					for _, c := range m.Isolated {
						other += c.Else
						if c.Gradient != float64(c.Formula) {
							wrong++
						}
					}
					return found{float64(other) + float64(wrong), fmt.Sprintf("%d bytes, and gradients by formula in %d of %d cases", other, len(m.Isolated)-wrong, len(m.Isolated))}
				},
			},
			{
				what: "better accuracy, mostly of deeper models", published: "better", judge: func(ours float64) verdict {
					switch {
					case ours > 0.5:
						return reproduced
					case ours > 0:
						return partly
					}
					return not
				},
				formula: "none: no formula gives an accuracy",
				ours:    func(m *measured) found { return deeper(m.means) },
			},
			{
				what: "accuracy of four groups with halo and sweep on community shards, compared with one machine", published: "no loss", judge: atMost(0.1),
				formula: "none: no formula gives an accuracy",
				ours:    func(m *measured) found { return below(pairs(m.means, "one machine", "", "halo swept")) },
			},
		},
		why: "Without features on the wire an epoch costs what the processor costs, so the gain grows with the share that fetching takes, and is larger where links are slower. Groups also compute fewer rows than slices of a batch, so it can exceed that share's. " +
			"On graphs of this size groups with a halo see all edges of their vertices, so their accuracy is that of one machine within noise, in deep models too. Of four layers in four groups we find no gain that is more than noise. " +
			"The unbiased estimator is exact for linear models only, and Adam hides a common factor of gradients; corrections help some rows and harm others ([ablation](ablation.md)).",
	}
}

// pairs returns the finished rows of a way beside those of a baseline, where the row's name holds a
// part. A row that several tables have counts once.
func pairs(means []runs.Sum, baseline, part, way string) (list [][2]runs.Sum) {
	known := map[string]bool{}
	for _, m := range means {
		row, is := strings.CutSuffix(m.Row, "/"+way)
		if !is || !strings.Contains(m.Row, part) || m.Done < m.Seeds || known[row] {
			continue
		}
		one := slices.IndexFunc(means, func(o runs.Sum) bool { return o.Row == row+"/"+baseline && o.Done == o.Seeds })
		if one >= 0 {
			known[row] = true
			list = append(list, [2]runs.Sum{means[one], m})
		}
	}
	return list
}

// shared returns the finished rows of several nodes beside the same rows of one.
func shared(means []runs.Sum) (list [][2]runs.Sum) {
	for _, m := range means {
		if m.Nodes == 0 || m.Done < m.Seeds {
			continue
		}
		for _, one := range means {
			if one.Row == m.Row && one.Nodes == 0 && one.Done == one.Seeds {
				list = append(list, [2]runs.Sum{one, m})
			}
		}
	}
	return list
}

// deeper returns in how many rows of deep models groups are better than one machine by more than
// noise, less those where they are worse, as a share of all.
func deeper(means []runs.Sum) found {
	better, worse := 0, 0
	all := pairs(means, "one machine", " 4/", "halo swept")
	for _, p := range all {
		if p[0].Noise(p[1]) {
			continue
		}
		if p[1].Test > p[0].Test {
			better++
		} else {
			worse++
		}
	}
	if len(all) == 0 {
		return found{}
	}
	return found{float64(better-worse) / float64(len(all)), fmt.Sprintf("better in %d, worse in %d of %d rows of four layers, else noise", better, worse, len(all))}
}

// below returns by how many points rows are below their baselines, on average.
func below(all [][2]runs.Sum) found {
	if len(all) == 0 {
		return found{}
	}
	var points []float64
	worst, row := math.Inf(-1), ""
	for _, p := range all {
		d := p[0].Test - p[1].Test
		if points = append(points, d); d > worst {
			worst, row = d, p[1].Row
		}
	}
	mean := stats.Mean(points)
	return found{mean, fmt.Sprintf("%+.2f points, mean of %d rows; %+.2f at worst (%s)", -mean, len(all), -worst, row)}
}

// gnnpipe returns the claims of GNNPipe (arXiv 2308.10087).
func gnnpipe() paper {
	// faster returns graph's seconds over those of pipe with one way, which is what the authors
	// measured, in each case on four nodes.
	faster := func(m *measured, known bool) (all []float64) {
		for _, p := range m.Piped {
			if p.Authors > 0 && p.Nodes == 4 && (!known || p.Graph != "arXiv") {
				all = append(all, p.Ratio)
			}
		}
		return all
	}
	volumes := func(m *measured) (counted, ours []float64) {
		for _, v := range m.Volumes {
			if v.Graph != "arXiv" { // the authors' mean is without
				counted, ours = append(counted, v.Counted), append(ours, v.Ours)
			}
		}
		return counted, ours
	}
	parts := []string{"pipe"}
	for _, graph := range []string{"squirrel", "flickr", "reddit", "physics", "arxiv"} {
		parts = append(parts, "pipe-time/"+graph)
	}
	return paper{
		parts: parts,
		name:  "gnnpipe", title: "GNNPipe: claims and what came of them", means: []string{"deep"},
		setting: "The authors had two machines with four A5000 each, models of 32 layers and five graphs. Ours are processes with a share of two cores, graphs of the same shapes of the size that an hour allows, " +
			"and the same models, on links without a bound, of 1 Gbit/s and of 400 Mbit/s for every graph. The baseline is our own `graph`, whose ways are cut by cost and whose rows travel while it computes.",
		claims: []claim{
			{
				what: "volume smaller, on average", published: "8.69x", drawn: 8.69, judge: atLeast(8.69),
				formula: "theirs: the same within 3 % by L alpha / ((S-1) n), with graph's sums of gradients",
				ours: func(m *measured) found {
					c, _ := volumes(m)
					mean, _ := ratios(c, "cases by formula, as they count")
					return mean
				},
			},
			{
				what: "volume smaller, at best", published: "22.89x", drawn: 22.89, judge: atLeast(22.89),
				formula: "ResGCN+ on Squirrel, where more than half of graph's bytes are sums of gradients: 10.2x in rows alone",
				ours: func(m *measured) found {
					c, _ := volumes(m)
					_, best := ratios(c, "cases by formula, as they count")
					return best
				},
			},
			{
				what: "volume smaller, of our models and with the pipeline's own sums", published: "8.69x", drawn: 8.69, judge: atLeast(8.69),
				formula: "ours are by formula, of graphs of their size",
				ours:    func(m *measured) found { _, o := volumes(m); mean, _ := ratios(o, "cases by formula"); return mean },
			},
			{
				what: "epochs faster, on average", published: "1.58x (arithmetic, without arXiv)", drawn: 1.58, judge: atLeast(1.58),
				formula: "none: it depends on what their baseline waits for; where it only sends, as many times as the volume is smaller",
				ours: func(m *measured) found {
					all := faster(m, true)
					if len(all) == 0 {
						return found{}
					}
					return times(stats.Mean(all), fmt.Sprintf("arithmetic mean of %d cases at three rates without arXiv; %.2fx geometric, of all", len(all), stats.Geometric(faster(m, false))))
				},
			},
			{
				what: "epochs faster, at best", published: "2.45x", drawn: 2.45, judge: atLeast(2.45),
				formula: "none, likewise",
				ours:    func(m *measured) found { _, best := ratios(faster(m, true), "cases"); return best },
			},
			{
				what: "accuracy with one way, compared with graph parallelism", published: "no loss where the model learns", judge: atMost(0.1),
				formula: "none: no formula gives an accuracy",
				ours:    func(m *measured) found { return below(pairs(m.means, "graph", "-16/", "pipe W=1")) },
			},
		},
		why: "The volumes follow from the formula, and agree with the published ones as the authors count them: with the sums of gradients of graph parallelism and without the pipeline's. " +
			"Times depend on what the baseline waits for. The authors' baseline balances vertices only and exchanges rows in rounds, one after another; ours does neither. " +
			"A pipeline wins where its stages are about equally long and rows of neighbours many, and loses where the first layer has wide features or few vertices have neighbours elsewhere. " +
			"Their best time is of a GCN on Reddit that does not learn (16.6 %).",
	}
}
