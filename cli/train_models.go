package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

// This file shows sweeps.

// modelsOf says what a job trains: of a sweep, how many there are.
func modelsOf(name string, models int) string {
	if models == 0 {
		return name
	}
	return fmt.Sprintf("%d models (%s)", models, name)
}

// ofModel says of which model of a sweep the best epoch is.
func ofModel(j api.Job) string {
	if j.Best == nil || j.Best.Model == nil {
		return ""
	}
	i := *j.Best.Model
	text := fmt.Sprintf(" of model %d", i)
	if i >= 0 && i < len(j.Models) {
		text += " (" + cell(params(j.Models[i])) + ")"
	}
	return text
}

// params says what makes a model differ from the others of its sweep.
func params(m api.JobModel) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m.Params)) {
		list = append(list, key+"="+m.Params[key])
	}
	return strings.Join(list, ", ")
}

// diverged says how models of a sweep ended that did not come to its end.
func diverged(j api.Job) []string {
	var list []string
	for _, m := range j.Models {
		if m.Diverged != "" {
			list = append(list, m.Diverged)
		}
	}
	return list
}

// printModels lists the models of a sweep.
func printModels(w io.Writer, j api.Job) error {
	if len(j.Models) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, m := range j.Models {
		for key := range m.Params {
			keys[key] = true
		}
	}
	columns := slices.Sorted(maps.Keys(keys))
	head := []string{"MODEL"}
	for _, key := range columns {
		head = append(head, strings.ToUpper(key))
	}
	rows := [][]string{append(head, "EPOCHS", "BEST", "VAL", "TEST")}
	for i, m := range j.Models {
		row := []string{strconv.Itoa(i)}
		if j.Best != nil && j.Best.Model != nil && *j.Best.Model == i {
			row[0] += " *"
		}
		for _, key := range columns {
			row = append(row, m.Params[key])
		}
		best, val, test := "", "", ""
		if m.Best != nil {
			best, val, test = strconv.Itoa(m.Best.Epoch), share(m.Best.ValAccuracy), share(m.Best.TestAccuracy)
		}
		rows = append(rows, append(row, strconv.Itoa(lastOf(m.History)), best, val, test))
	}
	return table(w, rows...)
}

// printModelEpochs lists each epoch of each model of a sweep.
func printModelEpochs(w io.Writer, j api.Job) error {
	for i, m := range j.Models {
		if _, err := fmt.Fprintf(w, "\nModel %d, %s:\n", i, cell(params(m))); err != nil {
			return err
		}
		if err := printAllEpochs(w, j, m.History); err != nil {
			return err
		}
	}
	return nil
}

// printAllEpochs lists epochs in the way that suits the job.
func printAllEpochs(w io.Writer, j api.Job, history []api.JobEpoch) error {
	if shared(j) {
		return printSharedEpochs(w, history)
	}
	return printEpochs(w, history)
}
