package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/node/api"
)

// section is a part of the frame.
type section struct {
	lines []string
	least int                  // lines it gets before other sections get more
	crop  func(n int) []string // returns fewer lines; nil: the first of them
}

// frame returns the view, cut to the size of the window.
func (m model) frame() string {
	if m.width < 1 || m.height < 1 {
		return ""
	}
	lines := m.header()
	foot := []string{m.paint.in(dim, m.keys.help())}
	if m.once {
		foot = nil
	}
	if room := m.height - len(lines) - len(foot); m.mesh != nil && room > 0 {
		lines = append(lines, m.arrange(room)...)
		if !m.once {
			for len(lines) < m.height-len(foot) {
				lines = append(lines, "")
			}
		}
		lines = append(lines, foot...)
	}
	lines = lines[:min(len(lines), m.height)]
	for i, l := range lines {
		lines[i] = fit(l, m.width)
	}
	return strings.Join(lines, "\n")
}

// header returns the summary of the node, and the error if it does not answer.
func (m model) header() []string {
	var lines []string
	if m.mesh != nil {
		lines = append(lines, m.summary())
	}
	switch {
	case m.lost != nil:
		text := output.Sentence(m.lost.Error())
		if m.mesh != nil {
			text += fmt.Sprintf(" Retrying; this is the state of %s ago.", m.now.Sub(m.seen).Round(time.Second))
		} else {
			text += " Retrying; q quits."
		}
		for _, l := range wrapped(text, m.width) {
			lines = append(lines, m.paint.in(red, l))
		}
	case m.mesh == nil:
		lines = append(lines, fmt.Sprintf("Asking the daemon at %s.", output.Cell(m.addr)))
	}
	return lines
}

func (m model) summary() string {
	s := m.mesh.Status
	standing := m.paint.in(green, "ready")
	if !s.Ready {
		standing = m.paint.in(red, "not ready")
	}
	if m.paused {
		standing = m.paint.in(yellow, "PAUSED")
	}
	leader := "no leader"
	if s.Leader != "" {
		leader = "leader " + output.Cell(s.Leader)
	}
	return strings.Join([]string{
		m.paint.in(bold, output.Cell(s.Node)), standing, leader, "generation " + strconv.FormatUint(s.Generation, 10),
		output.Plural(s.Members, "member", "members"), output.Plural(s.Jobs, "job runs", "jobs run"), m.seen.Local().Format(time.TimeOnly),
	}, "   ")
}

// arrange divides the lines of the window among the sections.
func (m model) arrange(room int) []string {
	members, jobs, job, problems, events := m.members(), m.jobs(), m.job(), m.problems(), m.happenings()
	shown := slices.DeleteFunc([]*section{&members, &jobs, &job, &problems, &events}, func(s *section) bool { return len(s.lines) == 0 })
	given := make(map[*section]int)
	left := room
	give := func(s *section, want int) {
		n := max(0, min(want, len(s.lines))-given[s])
		n = min(n, left)
		given[s] += n
		left -= n
	}
	// In order of importance.
	for _, s := range []*section{&job, &problems, &members, &jobs, &events} {
		give(s, s.least)
	}
	give(&problems, 8)
	give(&members, 6)
	give(&job, len(job.lines))
	apart := left >= len(shown) // a blank line before each
	if apart {
		left -= len(shown)
	}
	for _, s := range []*section{&members, &jobs, &problems, &events} {
		give(s, len(s.lines))
	}
	var lines []string
	for _, s := range shown {
		n := given[s]
		if apart && n > 0 {
			lines = append(lines, "")
		}
		if n < len(s.lines) && s.crop != nil && n > 0 {
			lines = append(lines, s.crop(n)...)
		} else {
			lines = append(lines, s.lines[:n]...)
		}
	}
	return lines
}

// andMore returns a crop function for a list with a head, which counts the lines left out.
func andMore(lines []string, of string) func(int) []string {
	return func(n int) []string {
		if n < 2 {
			return lines[:n]
		}
		return append(slices.Clone(lines[:n-1]), fmt.Sprintf("and %d more %s", len(lines)-n+1, of))
	}
}

func (m model) members() section {
	if len(m.mesh.Members) == 0 {
		return section{}
	}
	rows := [][]string{{"MEMBER", "STATUS", "ROLE", "DEVICE", "SHARDS", "ADDRESS", "VERSION"}}
	for _, n := range m.mesh.Members {
		role := output.Cell(n.Role)
		if n.Role == "leader" {
			role = m.paint.in(bold, role)
		}
		rows = append(rows, []string{output.Cell(n.Name), m.paint.state(n.Status), role, output.Cell(n.Device), strconv.Itoa(n.Shards), output.Cell(n.Address), output.Cell(n.Version)})
	}
	lines := m.headed(columns(rows, len(rows[0])))
	return section{lines: lines, least: 4, crop: andMore(lines, "members")}
}

// headed draws the first line as a head.
func (m model) headed(lines []string) []string {
	lines[0] = m.paint.in(dim, lines[0])
	return lines
}

func (m model) jobs() section {
	list := m.mesh.Jobs
	if len(list) == 0 {
		return section{lines: []string{"There are no jobs: `hopmesh train start` starts one."}, least: 1}
	}
	id, at := pick(list, m.chosen), 0
	rows := [][]string{{"  JOB", "STATE", "DONE", "EPOCH", "STRATEGY", "MODEL", "DATASET", "VAL", "NODES"}}
	for i, j := range list {
		mark := "  "
		if j.ID == id {
			mark, at = "▸ ", i
		}
		val := ""
		if j.Best != nil {
			val = output.BestScores(j.Best).Val
		}
		rows = append(rows, []string{
			mark + output.Cell(j.ID), m.paint.state(j.State), output.Bar(m.done(j), 10), fmt.Sprintf("%d/%d", j.Epoch, j.EpochsTotal), output.Cell(j.Strategy), output.Cell(output.ModelName(j.Model, j.Models)), output.Cell(j.Dataset), output.Cell(val), output.Cell(strings.Join(j.Nodes, ",")),
		})
	}
	lines := m.headed(columns(rows, len(rows[0])))
	return section{lines: lines, least: 4, crop: func(n int) []string {
		// The chosen job stays visible.
		from := min(max(0, at-(n-1)/2), len(list)-(n-1))
		return append([]string{lines[0]}, lines[1+from:from+n]...)
	}}
}

// done returns the share of a job's epochs that is over, with the steps of the current one.
func (m model) done(j api.JobSummary) float64 {
	if j.EpochsTotal < 1 {
		return 0
	}
	over := float64(j.Epoch)
	if d := m.mesh.Job; d != nil && d.ID == j.ID && d.Epoch > j.Epoch && d.Steps > 0 {
		over += float64(min(d.Step, d.Steps)) / float64(d.Steps)
	}
	return over / float64(j.EpochsTotal)
}

func (m model) problems() section {
	list := m.mesh.Status.Sentences()
	if m.mesh.Job != nil {
		for _, p := range m.mesh.Job.Problems {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	if len(list) == 0 {
		text := "Nothing is wrong."
		if !m.mesh.Status.Ready {
			text = "This node is not ready yet."
		}
		return section{lines: []string{text}, least: 1}
	}
	var lines []string
	for _, p := range list {
		for _, l := range wrapped(output.Sentence(p), m.width) {
			lines = append(lines, m.paint.in(yellow, l))
		}
	}
	return section{lines: lines, least: 2, crop: andMore(lines, "lines")}
}

func (m model) happenings() section {
	if m.once {
		return section{}
	}
	lines := []string{m.paint.in(dim, "EVENTS")}
	for _, e := range m.events {
		lines = append(lines, e.Time.Local().Format(time.TimeOnly)+"  "+output.Sentence(e.Message))
	}
	if len(m.events) == 0 {
		lines = append(lines, "No events yet.")
	}
	return section{lines: lines, least: 3, crop: func(n int) []string {
		if n == 1 {
			return lines[len(lines)-1:]
		}
		return append([]string{lines[0]}, lines[len(lines)-n+1:]...)
	}}
}
