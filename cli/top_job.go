package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/hopmesh/hopmesh/node/api"
)

// job tells of the chosen job, the most important first.
func (m topModel) job() section {
	id := pick(m.mesh.Jobs, m.chosen)
	if id == "" {
		return section{}
	}
	j := m.mesh.Job
	if j == nil || j.ID != id {
		text := "Asking for job " + cell(id) + "."
		if m.paused {
			text = "Job " + cell(id) + " is shown when you go on: press p."
		}
		return section{lines: []string{text}, least: 1}
	}
	head := fmt.Sprintf("JOB %s  %s on %s, %s", cell(j.ID), cell(modelsOf(j.Model, len(j.Models))), cell(j.Dataset), cell(strategyOf(*j)))
	if len(j.Nodes) > 0 {
		head += ", on " + cell(listed(j.Nodes))
	}
	lines := []string{m.paint.in(bold, head), m.standing(*j)}
	if j.Error != "" {
		for _, l := range wrapped(sentence(j.Error), m.width) {
			lines = append(lines, m.paint.in(red, l))
		}
	}
	if n := len(j.History); n > 0 {
		e := j.History[n-1]
		lines = append(lines, learnt(*j))
		lines = append(lines, m.spent(e)...)
		if rows := e.Rows.Local + e.Rows.Remote; rows > 0 {
			lines = append(lines, fmt.Sprintf("Rows      %s local, %s remote (%s)", thousands(e.Rows.Local), thousands(e.Rows.Remote), percent(float64(e.Rows.Remote)/float64(rows))))
		}
		lines = append(lines, m.sent(e)...)
		if e.Eval != nil {
			lines = append(lines, fmt.Sprintf("Judged    in %s, %s sent", brief(e.Eval.Seconds), size(total(e.Eval.Bytes))))
		}
	}
	if why := whyOf(*j); why != "" {
		lines = append(lines, wrapped("Why       "+sentence(why), m.width)...)
	}
	return section{lines: lines, least: 9}
}

// standing says how far a job is.
func (m topModel) standing(j api.Job) string {
	over := lastOf(j.History)
	for _, m := range j.Models {
		over = max(over, lastOf(m.History))
	}
	done := m.done(api.JobSummary{ID: j.ID, Epoch: over, EpochsTotal: j.EpochsTotal})
	return fmt.Sprintf("Epoch     %s  %s, %s", bar(done, min(30, max(m.width-50, 10))), percent(min(done, 1)), standingAt(j))
}

func lastOf(history []api.JobEpoch) int {
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Epoch
}

// learnt is what the latest epochs came to. An epoch need not have been evaluated.
func learnt(j api.Job) string {
	said := []string{fmt.Sprintf("Learnt    loss %.4f", j.History[len(j.History)-1].Loss)}
	for _, e := range slices.Backward(j.History) {
		if e.ValAccuracy != nil {
			said = append(said, "validation "+percent(*e.ValAccuracy))
			break
		}
	}
	if j.Best != nil && j.Best.ValAccuracy != nil {
		said = append(said, fmt.Sprintf("best %s in epoch %d%s", percent(*j.Best.ValAccuracy), j.Best.Epoch, ofModel(j)))
	}
	return strings.Join(said, ", ")
}

// spent shows where the time of an epoch went. Each phase has a letter where there are no
// colours.
func (m topModel) spent(e api.JobEpoch) []string {
	parts := []struct {
		name, colour string
		seconds      float64
	}{
		{"sample", purple, e.Phases.Sample}, {"gather", blue, e.Phases.Gather}, {"compute", green, e.Phases.Compute},
		{"reduce", yellow, e.Phases.Reduce}, {"wait", red, e.Phases.Wait},
	}
	sizes := make([]float64, len(parts))
	names := make([]string, len(parts))
	for i, p := range parts {
		sizes[i] = p.seconds
		names[i] = m.paint.in(p.colour, p.name) + " " + short(p.seconds)
	}
	var stacked strings.Builder
	for i, n := range portions(sizes, min(50, max(m.width-30, 10))) {
		with := parts[i].name[:1]
		if m.paint {
			with = "█"
		}
		stacked.WriteString(m.paint.in(parts[i].colour, strings.Repeat(with, n)))
	}
	took := "Time      " + brief(e.Seconds)
	if stacked.Len() == 0 {
		return []string{took}
	}
	by := strings.Join(names, "  ")
	indent := min(10, max(m.width-ansi.StringWidth(by), 2))
	return []string{took + "  " + stacked.String(), strings.Repeat(" ", indent) + by}
}

// short shows seconds with three digits, so that a line has room for five of them.
func short(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	digit := time.Duration(1)
	for d/digit >= 1000 {
		digit *= 10
	}
	return d.Round(digit).String()
}

// sent shows what nodes sent in an epoch, by what for. Where a window has no room for
// all kinds, the smallest are left out.
func (m topModel) sent(e api.JobEpoch) []string {
	all := total(e.Bytes)
	if all == 0 {
		return nil
	}
	kinds := slices.DeleteFunc(purposes(), func(p purpose) bool { return *p.of(&e.Bytes) == 0 })
	for {
		rows := [][]string{{"Sent    "}, {"an epoch"}, {"a second"}}
		put := func(name string, bytes uint64) {
			rows[0] = append(rows[0], name)
			rows[1] = append(rows[1], size(bytes))
			rows[2] = append(rows[2], pace(bytes, e.Seconds))
		}
		put("all", all)
		for _, p := range kinds {
			put(p.name, *p.of(&e.Bytes))
		}
		lines := columns(rows, 1)
		if ansi.StringWidth(lines[0]) <= m.width || len(kinds) == 0 {
			return lines
		}
		least := slices.MinFunc(kinds, func(a, b purpose) int { return cmp.Compare(*a.of(&e.Bytes), *b.of(&e.Bytes)) })
		kinds = slices.DeleteFunc(kinds, func(p purpose) bool { return p.name == least.name })
	}
}

// pace is what was sent in a second of an epoch.
func pace(bytes uint64, seconds float64) string {
	rate := float64(bytes) / seconds
	if !(seconds > 0) || rate >= 1<<63 {
		return "-"
	}
	return size(uint64(rate))
}
