package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
)

// figures are a cell's: medians of its runs.
type figures struct {
	cell
	runs      int
	first     float64 // seconds of the first epoch
	second    float64 // of the second, in which nodes that keep rows fetch the last of them
	later     float64 // of one from the second on
	whole     float64 // seconds of all epochs of a run
	bytes     float64
	processor float64
	memory    float64
	accuracy  float64
	chosen    string // by auto, for the last epoch: of all runs, with "or" between them
}

// figuresOf returns the figures of a cell's runs, of which there is one at least.
func figuresOf(c cell, runs []run) figures {
	f := figures{cell: c, runs: len(runs)}
	var first, second, later, whole, bytes, processor, memory, accuracy []float64
	var chosen []string
	for _, r := range runs {
		first, later, whole = append(first, r.Seconds[0]), append(later, r.Seconds[1:]...), append(whole, float64(len(r.Seconds))*stats.Mean(r.Seconds))
		sent, used := perEpoch(&r)
		bytes, processor = append(bytes, sent), append(processor, used)
		if len(r.Seconds) > 1 {
			second = append(second, r.Seconds[1])
		}
		memory, accuracy = append(memory, float64(r.Memory)), append(accuracy, r.Accuracy)
		if r.Chosen != "" && r.Chosen != c.side.strategy && !slices.Contains(chosen, r.Chosen) {
			chosen = append(chosen, r.Chosen)
		}
	}
	slices.Sort(chosen)
	f.chosen, f.whole = strings.Join(chosen, " or "), stats.Median(whole)
	f.first, f.second, f.later, f.bytes, f.processor = stats.Median(first), stats.Median(second), stats.Median(later), stats.Median(bytes), stats.Median(processor)
	f.memory, f.accuracy = stats.Median(memory), stats.Median(accuracy)
	return f
}

// perEpoch returns the mean bytes and processor time of epochs that are neither the first nor the last,
// which ends after our evaluation. Our daemon may report that two short epochs have ended at the same
// time. Then one of them has the bytes and the processor time of both, and the other has none. If the
// last epoch has none, the epochs before it are divided by one more.
func perEpoch(r *run) (bytes, processor float64) {
	last := len(r.Bytes) - 1
	if last < 2 {
		return 0, 0
	}
	for i := 1; i < last; i++ {
		bytes, processor = bytes+float64(r.Bytes[i]), processor+r.Processor[i]
	}
	n := float64(last - 1)
	if r.Processor[last] < processor/n/4 {
		n++
	}
	return bytes / n, processor / n
}

// all are the figures of the cells that were run.
type all []figures

// of returns the figures of a side where another one was measured.
func (a all) of(at cell, name string) (figures, bool) {
	i := slices.IndexFunc(a, func(f figures) bool { return f.at(at) && f.side.name == name })
	if i < 0 {
		return figures{}, false
	}
	return a[i], true
}

// dist returns the best of DistDGL's cuts by a figure.
func (a all) dist(at cell, figure func(figures) float64) (best float64, ok bool) {
	for _, name := range []string{byMETIS, byOwn} {
		if f, found := a.of(at, name); found && (!ok || figure(f) < best) {
			best, ok = figure(f), true
		}
	}
	return best, ok
}

func first(f figures) float64  { return f.first }
func later(f figures) float64  { return f.later }
func whole(f figures) float64  { return f.whole }
func memory(f figures) float64 { return f.memory }

// ratios returns a figure of ours over theirs, by case of the headline.
func (a all) ratios(ours string, figure func(figures) float64, theirs func(at cell, figure func(figures) float64) (float64, bool)) (list []float64) {
	for _, m := range models {
		at := cell{setup: usual, model: m}
		mine, ok := a.of(at, ours)
		if !ok {
			continue
		}
		if base, ok := theirs(at, figure); ok {
			list = append(list, figure(mine)/base)
		}
	}
	return list
}

// ddp is DDP's figure.
func (a all) ddp(at cell, figure func(figures) float64) (float64, bool) {
	f, ok := a.of(at, byDDP)
	return figure(f), ok
}

// overBestOf returns, for each cell of auto, a time over that of our best exact strategy there.
func (a all) overBestOf(figure func(figures) float64) (list []float64) {
	for _, f := range a {
		if f.side.name != byAuto {
			continue
		}
		best := 0.0
		for _, other := range a {
			if other.at(f.cell) && other.side.exact && other.side.copies == f.side.copies && len(other.side.set) == 0 &&
				(best == 0 || figure(other) < best) {
				best = figure(other)
			}
		}
		if best > 0 {
			list = append(list, figure(f)/best)
		}
	}
	return list
}

// overMemoryOf returns, for each case of the headline, the most memory of ours that count over the
// least of DistDGL's.
func (a all) overMemoryOf(counts func(side) bool) (list []float64) {
	for _, m := range models {
		at, most := cell{setup: usual, model: m}, 0.0
		for _, f := range a {
			if f.at(at) && f.side.framework == "" && counts(f.side) {
				most = max(most, f.memory)
			}
		}
		if base, ok := a.dist(at, memory); ok && most > 0 {
			list = append(list, most/base)
		}
	}
	return list
}

// A bar is a limit beside what was measured.
type bar struct {
	what  string
	value float64 // 0: nothing was measured
	cases int
	of    int     // cases that the list has
	limit float64 // at most so much is allowed; a bar with 0 has no limit
}

func (b bar) verdict() string {
	switch {
	case b.cases == 0:
		return "not measured"
	case b.limit == 0:
		return ""
	case b.value > b.limit:
		return "FALLS SHORT"
	case b.cases < b.of:
		return "holds so far"
	}
	return "holds"
}

// worst returns the largest, or 0.
func worst(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}

// bars compares figures with all limits.
func (a all) bars() []bar {
	dist, ddp := a.ratios(byLeap, later, a.dist), a.ratios(byLeap, later, a.ddp)
	total, totalDDP, totalAuto := a.ratios(byLeap, whole, a.dist), a.ratios(byLeap, whole, a.ddp), a.overBestOf(whole)
	begin, bare := a.ratios(byLeap, first, a.dist), a.ratios(byBare, later, a.dist)
	auto, held := a.overBestOf(later), a.overMemoryOf(func(s side) bool { return s.name != byP3 })
	heldByP3 := a.overMemoryOf(func(s side) bool { return s.name == byP3 })
	choices := 0
	for _, c := range cells() {
		if c.side.name == byAuto {
			choices++
		}
	}
	return []bar{
		{"leap over DistDGL, later epochs, geometric mean", stats.Geometric(dist), len(dist), len(models), overDistMean},
		{"leap over DistDGL, later epochs, worst case", worst(dist), len(dist), len(models), overDistWorst},
		{"leap over DDP, later epochs, average", stats.Mean(ddp), len(ddp), len(models), overDDPMean},
		{"leap over DDP, later epochs, worst case", worst(ddp), len(ddp), len(models), overDDPWorst},
		{"leap over DistDGL, first epoch, worst case", worst(begin), len(begin), len(models), overDistFirst},
		{"leap over DistDGL, all epochs together, worst case", worst(total), len(total), len(models), 0},
		{"leap over DDP, all epochs together, worst case", worst(totalDDP), len(totalDDP), len(models), 0},
		{"leap without cache and copies over DistDGL, later epochs, worst case", worst(bare), len(bare), len(models), overDistBare},
		{"auto over our best exact strategy, worst of all cells", worst(auto), len(auto), choices, overBest},
		{"auto over our best exact strategy, all epochs together, worst of all cells", worst(totalAuto), len(totalAuto), choices, 0},
		{"memory of all our processes over DistDGL's, worst case and strategy but p3", worst(held), len(held), len(models), overMemory},
		{"memory of all our processes by p3 over DistDGL's, worst case", worst(heldByP3), len(heldByP3), len(models), 0},
	}
}

// line describes a bar for a table.
func (b bar) line() []any {
	value, limit := "", ""
	if b.limit > 0 {
		limit = fmt.Sprintf("at most %gx", b.limit)
	}
	if b.cases > 0 {
		value = fmt.Sprintf("%.3fx", b.value) // two digits may hide on which side of the limit it is
	}
	return []any{b.what, fmt.Sprintf("%d of %d", b.cases, b.of), value, limit, b.verdict()}
}
