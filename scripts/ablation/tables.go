package main

import (
	"fmt"
	"math"
	"strings"
)

// models returns the lines of the first table: a model on a graph by one machine, in two and four
// groups that have a halo and sweep, and in four whose shards are random.
func (all means) models() [][]string {
	lines := [][]string{{"graph", "model", "layers", "seeds", "one machine", "2 groups", "4 groups", "4 groups, random shards", ""}}
	for _, s := range subjects() {
		for _, m := range shapes() {
			one, known := all.of(s, m, alone)
			if !known {
				continue
			}
			line := []string{s.title, strings.ToUpper(m.model), fmt.Sprint(m.layers), fmt.Sprint(one.seeds), one.text()}
			var ways, ones []mean
			for _, way := range []string{pair, full, scattered} {
				if groups, known := all.of(s, m, way); known {
					line, ways, ones = append(line, groups.beside(&one)), append(ways, groups), append(ones, one)
				}
			}
			line = append(line, tells(ways, ones))
			if len(line) == len(lines[0]) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// ways returns the lines of the second table, with a column for each graph.
func (all means) ways() [][]string {
	var graphs []subject
	head := []string{"what"}
	for _, s := range subjects() {
		if len(all.waysOf(s)) > 0 {
			graphs, head = append(graphs, s), append(head, s.title)
		}
	}
	lines := [][]string{append(head, "edges seen", "")}
	for _, w := range ways() {
		var beside, ones []mean
		line, least, most, known := []string{w.name}, 100.0, 0.0, false
		for _, s := range graphs {
			m, asked := all.of(s, usual, w.name)
			if !asked {
				line = append(line, "")
				continue
			}
			known = true
			baseline := alone
			if w.plain {
				baseline = aloneBySGD
			}
			if one, there := all.of(s, usual, baseline); there && w.name != baseline {
				line, beside, ones = append(line, m.beside(&one)), append(beside, m), append(ones, one)
			} else {
				line = append(line, m.text())
			}
			for _, r := range m.Runs {
				least, most = min(least, 100*r.Seen), max(most, 100*r.Seen)
			}
		}
		if !known {
			continue
		}
		switch {
		case most == 0: // no edges were counted
			line = append(line, "")
		case math.Round(most) == math.Round(least):
			line = append(line, fmt.Sprintf("%.0f %%", most))
		default:
			line = append(line, fmt.Sprintf("%.0f to %.0f %%", least, most))
		}
		lines = append(lines, append(line, tells(beside, ones)))
	}
	return lines
}

// waysOf returns a graph's means in the second table that the first does not have: none of a slow one.
func (all means) waysOf(s subject) (some means) {
	if s.slow {
		return nil
	}
	for _, m := range all {
		if m.graph == s.graph && m.shape == usual && m.name != alone && m.name != pair {
			some = append(some, m)
		}
	}
	return some
}

// nodes returns the lines of the third table: runs that differ only in the number of
// nodes.
func (all means) nodes() [][]string {
	lines := [][]string{{"graph", "where", "test accuracy", "weights in the end, of the first seed", "the same as of one node"}}
	s := subjects()[0]
	one, _ := all.of(s, usual, steady)
	for _, w := range same() {
		m, asked := all.of(s, usual, w.name)
		if !asked || m.Done == 0 {
			continue
		}
		equal := 0
		for i, r := range m.Runs {
			if i < len(one.Runs) && r.Hash == one.Runs[i].Hash && r.Seed == one.Runs[i].Seed {
				equal++
			}
		}
		where := "one node"
		if w.nodes > 0 {
			where = fmt.Sprintf("%d nodes", w.nodes)
		}
		lines = append(lines, []string{s.title, where, m.text(), m.Runs[0].Hash[:12], fmt.Sprintf("%d of %d", equal, m.Done)})
	}
	return lines
}
