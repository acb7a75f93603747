package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

func printJob(w io.Writer, j api.Job) error {
	rows := [][]string{
		{"Job", j.ID},
		{"State", j.State},
		{"Dataset", j.Dataset},
		{"Model", fmt.Sprintf("%s, seed %d", modelsOf(j.Model, len(j.Models)), j.Seed)},
		{"Strategy", strategyOf(j)},
		{"Why", whyOf(j)},
		{"Nodes", strings.Join(nodesOf(j), ", ")},
		{"Generation", strconv.FormatUint(j.Generation, 10)},
		{"Epoch", standingAt(j)},
	}
	if n := len(j.History); n > 0 {
		rows = append(rows, []string{"Loss", fmt.Sprintf("%.4f", j.History[n-1].Loss)})
	}
	if j.Best != nil {
		rows = append(rows, []string{"Best", fmt.Sprintf("epoch %d%s%s", j.Best.Epoch, ofModel(j), scores(j.Best, ", "))})
	}
	if len(j.History) > 0 {
		if shared(j) {
			rows = append(rows, sharedRows(j.History)...)
		} else {
			rows = append(rows, []string{"Time", spent(j.History)})
		}
		rows = append(rows, []string{"Weights", j.History[len(j.History)-1].Weights})
	}
	if err := table(w, rows...); err != nil {
		return err
	}
	if err := printModels(w, j); err != nil {
		return err
	}
	said := slices.Concat(j.Problems, diverged(j), j.Notes)
	if j.Error != "" {
		said = append([]string{j.Error}, said...)
	}
	for i, p := range said {
		p = sentence(p)
		if i == 0 {
			p = "\n" + p
		}
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	return nil
}

// nodesOf are the job's nodes, with what those compute on that have another device than
// their processor.
func nodesOf(j api.Job) []string {
	list := slices.Clone(j.Nodes)
	for i := range list {
		if i < len(j.Devices) && j.Devices[i] != "cpu" && j.Devices[i] != "" {
			list[i] += " (" + j.Devices[i] + ")"
		}
	}
	return list
}

// scores says how good the epoch is whose model is kept, by the parts that have
// vertices.
func scores(b *api.JobBest, and string) string {
	text := ""
	if b.ValAccuracy == nil {
		text = ", the last"
	}
	var list []string
	if b.ValAccuracy != nil {
		list = append(list, percent(*b.ValAccuracy)+" on validation")
	}
	if b.TestAccuracy != nil {
		list = append(list, percent(*b.TestAccuracy)+" on test")
	}
	if len(list) == 0 {
		return text
	}
	return text + ", " + strings.Join(list, and)
}

func standingAt(j api.Job) string {
	text := fmt.Sprintf("%d of %d", j.Epoch, j.EpochsTotal)
	if j.State == "running" && j.Steps > 1 {
		text += fmt.Sprintf(", step %d of %d", j.Step, j.Steps)
	}
	return text
}

// spent says how long an epoch takes on average, and where that goes.
func spent(history []api.JobEpoch) string {
	seconds, of := average(history)
	text := brief(seconds) + " an epoch"
	if parts := phases(of); parts != "" {
		text += " (" + parts + ")"
	}
	evaluating := 0.0
	for _, e := range history {
		if e.Eval != nil {
			evaluating += e.Eval.Seconds
		}
	}
	if evaluating > 0 {
		text += ", evaluations " + brief(evaluating/float64(len(history)))
	}
	return text
}

// average is what an epoch takes, of one at least.
func average(history []api.JobEpoch) (seconds float64, of api.JobPhases) {
	n := float64(len(history))
	for _, e := range history {
		seconds += e.Seconds / n
		of.Sample += e.Phases.Sample / n
		of.Gather += e.Phases.Gather / n
		of.Compute += e.Phases.Compute / n
		of.Reduce += e.Phases.Reduce / n
		of.Wait += e.Phases.Wait / n
	}
	return seconds, of
}

// phases names those that took any time.
func phases(of api.JobPhases) string {
	var parts []string
	for _, p := range []struct {
		name    string
		seconds float64
	}{{"sampling", of.Sample}, {"gathering", of.Gather}, {"computing", of.Compute}, {"reducing", of.Reduce}, {"waiting", of.Wait}} {
		if p.seconds >= 1e-6 {
			parts = append(parts, p.name+" "+brief(p.seconds))
		}
	}
	return strings.Join(parts, ", ")
}

// brief shows seconds with three digits or so.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func printEpochs(w io.Writer, history []api.JobEpoch) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows := [][]string{{"EPOCH", "LOSS", "TRAIN", "VAL", "TEST", "SECONDS", "SAMPLE", "GATHER", "COMPUTE", "REDUCE", "WAIT", "EVAL", "ROWS", "WEIGHTS"}}
	for _, e := range history {
		eval := ""
		if e.Eval != nil {
			eval = brief(e.Eval.Seconds)
		}
		rows = append(rows, []string{
			strconv.Itoa(e.Epoch), fmt.Sprintf("%.4f", e.Loss), share(e.TrainAccuracy), share(e.ValAccuracy), share(e.TestAccuracy),
			brief(e.Seconds), brief(e.Phases.Sample), brief(e.Phases.Gather), brief(e.Phases.Compute), brief(e.Phases.Reduce), brief(e.Phases.Wait), eval,
			thousands(e.Rows.Local + e.Rows.Remote), e.Weights[:min(12, len(e.Weights))],
		})
	}
	return table(w, rows...)
}

func share(of *float64) string {
	if of == nil {
		return ""
	}
	return percent(*of)
}
