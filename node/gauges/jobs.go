// Package gauges shows each job of the plan to Prometheus: how far it is, what it has
// learned and what that cost. Every node of a mesh shows the same. What a node itself
// does is counted elsewhere.
package gauges

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/prometheus/client_golang/prometheus"
)

// However many jobs a mesh has had, mostJobs have series: first those that run, the
// oldest first, then the latest of those that have ended, lastEnded at most.
const (
	mostJobs  = 20
	lastEnded = 5
)

// Jobs describes the series of jobs.
type Jobs struct {
	info, epoch, epochs, loss, accuracy, seconds, bytes *prometheus.Desc
}

// New makes Jobs of what describes a metric.
func New(desc func(name, help string, labels ...string) *prometheus.Desc) Jobs {
	return Jobs{
		info:     desc("job_info", "1 for each job that runs, and the last few that have ended.", "job", "dataset", "strategy", "state"),
		epoch:    desc("job_epoch", "Whole epochs of the job.", "job"),
		epochs:   desc("job_epochs", "How many epochs it has at most.", "job"),
		loss:     desc("job_loss", "Its loss in the last whole epoch, of a sweep the lowest.", "job"),
		accuracy: desc("job_accuracy", "Its accuracy when it was last evaluated, as a share of 1, of a sweep that of the model that is best on validation.", "job", "split"),
		seconds:  desc("job_epoch_seconds", "What training took in the last whole epoch, without evaluation.", "job"),
		bytes:    desc("job_epoch_bytes", "What all its nodes sent each other in the last whole epoch, evaluation included.", "job", "kind"),
	}
}

// Describe sends what Collect describes its metrics with.
func (g Jobs) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.info, g.epoch, g.epochs, g.loss, g.accuracy, g.seconds, g.bytes} {
		out <- d
	}
}

// Collect sends the metrics of the jobs of a plan.
func (g Jobs) Collect(out chan<- prometheus.Metric, s *plan.State) {
	seen := map[string]bool{}
	for _, j := range chosen(s) {
		id := label(j.ID)
		if seen[id] {
			continue // two metrics of one name and labels would make all unreadable
		}
		seen[id] = true
		g.collect(out, id, j)
	}
}

func (g Jobs) collect(out chan<- prometheus.Metric, id string, j plan.Job) {
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{id}, labels...)...)
	}
	send(g.info, 1, label(j.DatasetName), label(j.Strategy), label(string(j.State)))
	send(g.epoch, float64(j.Last()))
	send(g.epochs, float64(j.Epochs))
	if e, ok := lastEvaluated(j); ok {
		for split, v := range map[string]*float64{"train": e.Eval.Train, "val": e.Eval.Val, "test": e.Eval.Test} {
			if v != nil {
				send(g.accuracy, *v, split)
			}
		}
	}
	last := lastEpoch(j)
	if len(last) == 0 {
		return
	}
	loss, sum := math.NaN(), last[0]
	for i, e := range last {
		if math.IsNaN(loss) || e.Loss < loss {
			loss = e.Loss
		}
		if i > 0 {
			sum.AddCost(&e)
		}
	}
	send(g.loss, loss)
	send(g.seconds, sum.Seconds)
	bytes := sum.Bytes
	if sum.Eval != nil {
		bytes.Add(sum.Eval.Bytes)
	}
	for kind, n := range map[peer.Kind]uint64{
		peer.Feature: bytes.Feature, peer.Topology: bytes.Topology, peer.Model: bytes.Model, peer.Gradient: bytes.Gradient,
		peer.Activation: bytes.Activation, peer.Shard: bytes.Shard, peer.Control: bytes.Control,
	} {
		send(g.bytes, float64(n), kind.String())
	}
}

// chosen returns the jobs that have series.
func chosen(s *plan.State) []plan.Job {
	var running, ended []plan.Job
	for _, j := range s.JobsInOrder() {
		switch {
		case j.State == plan.Running:
			running = append(running, j)
		case j.Ended():
			ended = append(ended, j)
		}
	}
	ended = ended[max(0, len(ended)-lastEnded):]
	slices.Reverse(ended)
	list := slices.Concat(running, ended)
	return list[:min(len(list), mostJobs)]
}

// lastEpoch returns the records of the last whole epoch, one for each model that trained
// in it.
func lastEpoch(j plan.Job) []plan.Epoch {
	from := len(j.History)
	for from > 0 && j.History[from-1].Epoch == j.Last() {
		from--
	}
	return j.History[from:]
}

// lastEvaluated returns the best record of the last epoch that was evaluated.
func lastEvaluated(j plan.Job) (plan.Epoch, bool) {
	var best plan.Epoch
	for _, e := range slices.Backward(j.History) {
		if best.Eval != nil && e.Epoch != best.Epoch {
			break
		}
		if e.Eval != nil && (best.Eval == nil || e.Better(best)) {
			best = e
		}
	}
	return best, best.Eval != nil
}

// longest bounds a label's value, in characters.
const longest = 64

// label returns a name, which users or other nodes chose, as the value of a label: of
// bounded length, and without bytes that readers of metrics refuse or terminals obey.
func label(name string) string {
	const instead = unicode.ReplacementChar
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return instead
		}
		return r
	}, strings.ToValidUTF8(name[:min(len(name), 4*longest)], string(instead)))
	if runes := []rune(name); len(runes) > longest {
		name = string(runes[:longest-1]) + "…"
	}
	return name
}
