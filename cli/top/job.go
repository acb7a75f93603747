package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/node/api"
)

// job returns the section of the chosen job, the most important lines first.
func (m model) job() section {
	id := pick(m.mesh.Jobs, m.chosen)
	if id == "" {
		return section{}
	}
	j := m.mesh.Job
	if j == nil || j.ID != id {
		text := "Asking for job " + output.Cell(id) + "."
		if m.paused {
			text = "Job " + output.Cell(id) + " is shown after the pause: press p."
		}
		return section{lines: []string{text}, least: 1}
	}
	head := fmt.Sprintf("JOB %s  %s on %s, %s", output.Cell(j.ID), output.Cell(output.ModelName(j.Model, len(j.Models))), output.Cell(j.Dataset), output.Cell(output.StrategyUsed(*j)))
	if len(j.Nodes) > 0 {
		head += ", on " + output.Cell(output.NodeList(j.Nodes))
	}
	lines := []string{m.paint.in(bold, head), m.standing(*j)}
	if j.Error != "" {
		for _, l := range wrapped(output.Sentence(j.Error), m.width) {
			lines = append(lines, m.paint.in(red, l))
		}
	}
	if n := len(j.History); n > 0 {
		e := j.History[n-1]
		lines = append(lines, learnt(*j))
		lines = append(lines, m.spent(e)...)
		if rows := e.Rows.Total(); rows > 0 {
			line := fmt.Sprintf("Rows      %s local, %s remote (%s)", output.Thousands(e.Rows.Local), output.Thousands(e.Rows.Remote), output.Percent(float64(e.Rows.Remote)/float64(rows)))
			if e.Rows.Kept > 0 {
				line += fmt.Sprintf(", %s kept from before", output.Thousands(e.Rows.Kept))
			}
			lines = append(lines, line)
		}
		lines = append(lines, m.sent(e)...)
		if e.Eval != nil {
			lines = append(lines, fmt.Sprintf("Evaluated in %s, %s sent", output.Seconds(e.Eval.Seconds), output.Bytes(e.Eval.Bytes.Total())))
		}
	}
	if why := output.LatestReason(*j); why != "" {
		lines = append(lines, wrapped("Why       "+output.Sentence(why), m.width)...)
	}
	return section{lines: lines, least: 9}
}

// standing returns the progress of a job.
func (m model) standing(j api.Job) string {
	over := output.LastEpoch(j.History)
	for _, m := range j.Models {
		over = max(over, output.LastEpoch(m.History))
	}
	done := m.done(api.JobSummary{ID: j.ID, Epoch: over, EpochsTotal: j.EpochsTotal})
	return fmt.Sprintf("Epoch     %s  %s, %s", output.Bar(done, min(30, max(m.width-50, 10))), output.Percent(min(done, 1)), output.Position(j))
}

// learnt returns the loss and the latest and best accuracy. Not every epoch is evaluated.
func learnt(j api.Job) string {
	parts := []string{fmt.Sprintf("Model     loss %.4f", j.History[len(j.History)-1].Loss)}
	for _, e := range slices.Backward(j.History) {
		if s := output.EpochScores(&e); s.Val != "" {
			parts = append(parts, "validation "+s.Val)
			break
		}
	}
	if j.Best != nil && output.BestScores(j.Best).Val != "" {
		parts = append(parts, fmt.Sprintf("best %s in epoch %d%s", output.BestScores(j.Best).Val, j.Best.Epoch, output.BestModel(j)))
	}
	return strings.Join(parts, ", ")
}

// spent returns the phases of an epoch as a bar. Without colours each phase has a letter.
func (m model) spent(e api.JobEpoch) []string {
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
	took := "Time      " + output.Seconds(e.Seconds)
	if stacked.Len() == 0 {
		return []string{took}
	}
	by := strings.Join(names, "  ")
	indent := min(10, max(m.width-ansi.StringWidth(by), 2))
	return []string{took + "  " + stacked.String(), strings.Repeat(" ", indent) + by}
}

// short formats seconds with three digits, so that five of them fit on a line.
func short(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	digit := time.Duration(1)
	for d/digit >= 1000 {
		digit *= 10
	}
	return d.Round(digit).String()
}

// sent returns the bytes sent in an epoch by kind. In a narrow window the smallest kinds are left
// out.
func (m model) sent(e api.JobEpoch) []string {
	all := e.Bytes.Total()
	if all == 0 {
		return nil
	}
	kinds := slices.DeleteFunc(output.ByteKinds(), func(p output.ByteKind) bool { return *p.Of(&e.Bytes) == 0 })
	for {
		rows := [][]string{{"Sent    "}, {"an epoch"}, {"a second"}}
		put := func(name string, bytes uint64) {
			rows[0] = append(rows[0], name)
			rows[1] = append(rows[1], output.Bytes(bytes))
			rows[2] = append(rows[2], pace(bytes, e.Seconds))
		}
		put("all", all)
		for _, p := range kinds {
			put(p.Name, *p.Of(&e.Bytes))
		}
		lines := columns(rows, 1)
		if ansi.StringWidth(lines[0]) <= m.width || len(kinds) == 0 {
			return lines
		}
		least := slices.MinFunc(kinds, func(a, b output.ByteKind) int { return cmp.Compare(*a.Of(&e.Bytes), *b.Of(&e.Bytes)) })
		kinds = slices.DeleteFunc(kinds, func(p output.ByteKind) bool { return p.Name == least.Name })
	}
}

// pace returns the bytes sent in a second of an epoch.
func pace(bytes uint64, seconds float64) string {
	rate := float64(bytes) / seconds
	if !(seconds > 0) || rate >= 1<<63 {
		return "-"
	}
	return output.Bytes(uint64(rate))
}
