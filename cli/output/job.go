package output

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

// Jobs prints a table of jobs.
func Jobs(w io.Writer, list []api.JobSummary) error {
	rows := [][]string{{"JOB", "STATE", "DATASET", "MODEL", "STRATEGY", "EPOCH", "VAL", "TEST", "NODES"}}
	for _, j := range list {
		val, test := "", ""
		if j.Best != nil {
			s := BestScores(j.Best)
			val, test = s.Val, s.Test
		}
		rows = append(rows, []string{
			j.ID, j.State, j.Dataset, ModelName(j.Model, j.Models), j.Strategy, strconv.Itoa(j.Epoch) + "/" + strconv.Itoa(j.EpochsTotal), val, test, strings.Join(j.Nodes, ","),
		})
	}
	return Table(w, rows...)
}

// Position returns the epoch of a job, and the step of a running one.
func Position(j api.Job) string {
	text := fmt.Sprintf("%d of %d", j.Epoch, j.EpochsTotal)
	if j.State == "running" && j.Steps > 1 {
		text += fmt.Sprintf(", step %d of %d", j.Step, j.Steps)
	}
	return text
}

// ModelName returns the model that a job trains, with the number of models of a sweep.
func ModelName(name string, models int) string {
	if models == 0 {
		return name
	}
	return fmt.Sprintf("%d models (%s)", models, name)
}

// BestModel returns " of model N" with its parameters if the best epoch is one of a sweep.
func BestModel(j api.Job) string {
	if j.Best == nil || j.Best.Model == nil {
		return ""
	}
	i := *j.Best.Model
	text := fmt.Sprintf(" of model %d", i)
	if i >= 0 && i < len(j.Models) {
		text += " (" + Cell(Params(j.Models[i])) + ")"
	}
	return text
}

// Params returns the swept parameters of a model.
func Params(m api.JobModel) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m.Params)) {
		list = append(list, key+"="+m.Params[key])
	}
	return strings.Join(list, ", ")
}

// ByteKind is a purpose that bytes are sent for.
type ByteKind struct {
	Head, Name string
	Of         func(*api.JobBytes) *uint64
}

// ByteKinds lists all kinds.
func ByteKinds() []ByteKind {
	return []ByteKind{
		{"FEATURE", "features", func(b *api.JobBytes) *uint64 { return &b.Feature }},
		{"TOPOLOGY", "topology", func(b *api.JobBytes) *uint64 { return &b.Topology }},
		{"MODEL", "models", func(b *api.JobBytes) *uint64 { return &b.Model }},
		{"GRADIENT", "gradients", func(b *api.JobBytes) *uint64 { return &b.Gradient }},
		{"ACTIVATION", "activations", func(b *api.JobBytes) *uint64 { return &b.Activation }},
		{"SHARD", "shards", func(b *api.JobBytes) *uint64 { return &b.Shard }},
		{"CONTROL", "control", func(b *api.JobBytes) *uint64 { return &b.Control }},
	}
}

// StrategyUsed returns a job's strategy, and what auto chose in the latest epoch.
func StrategyUsed(j api.Job) string {
	if n := len(j.History); n > 0 && j.History[n-1].Strategy != "" && j.History[n-1].Strategy != j.Strategy {
		return fmt.Sprintf("%s, which was %s in epoch %d", j.Strategy, j.History[n-1].Strategy, j.History[n-1].Epoch)
	}
	return j.Strategy
}

// LatestReason returns why the strategy was chosen. Reasons of earlier generations are ignored,
// since other nodes had them.
func LatestReason(j api.Job) string {
	for _, e := range slices.Backward(j.History) {
		if e.Why != "" && e.Generation >= j.Generation {
			return e.Why
		}
	}
	return j.Why
}

// NodeList names up to five nodes, or returns how many there are.
func NodeList(nodes []string) string {
	switch n := len(nodes); {
	case n > 5:
		return fmt.Sprintf("%d nodes", n)
	case n > 1:
		return strings.Join(nodes[:n-1], ", ") + " and " + nodes[n-1]
	}
	return nodes[0]
}

// LastEpoch returns the number of the last epoch, or 0.
func LastEpoch(history []api.JobEpoch) int {
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Epoch
}
