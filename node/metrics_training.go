package node

import (
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/prometheus/client_golang/prometheus"
)

// training describes what this node says of the jobs.
type training struct {
	jobs, epoch, step, steps, loss, accuracy, epochs, seconds, rows, remote, edges, bytes *prometheus.Desc
}

func describeTraining(desc func(name, help string, labels ...string) *prometheus.Desc) training {
	return training{
		jobs:     desc("jobs", "Jobs of the plan, by state.", "state"),
		epoch:    desc("training_epoch", "The epoch under way of the job that this node runs.", "job"),
		step:     desc("training_step", "How many steps of that epoch are done.", "job"),
		steps:    desc("training_steps", "How many steps it has.", "job"),
		loss:     desc("training_loss", "The loss of the last whole epoch, of a sweep the lowest.", "job"),
		accuracy: desc("training_val_accuracy", "The accuracy on validation when it was last evaluated, of a sweep the best, as a share of 1.", "job"),
		epochs:   desc("trained_epochs_total", "Epochs that this node has trained."),
		seconds:  desc("trained_seconds_total", "Where their time went, and that of evaluations.", "phase"),
		rows:     desc("trained_rows_total", "Input rows that all their nodes gathered in them."),
		remote:   desc("trained_remote_rows_total", "Those of the input rows that came from another node."),
		edges:    desc("trained_edges_total", "Edges over which rows were summed up in them."),
		bytes:    desc("trained_bytes_total", "What all their nodes sent each other in them and in evaluations.", "kind"),
	}
}

func (t training) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.jobs, t.epoch, t.step, t.steps, t.loss, t.accuracy, t.epochs, t.seconds, t.rows, t.remote, t.edges, t.bytes} {
		out <- d
	}
}

func (t training) collect(out chan<- prometheus.Metric, s *plan.State, v jobs.View) {
	tell := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	states := map[plan.JobState]int{plan.Queued: 0, plan.Running: 0, plan.Done: 0, plan.Failed: 0, plan.Stopped: 0}
	for _, j := range s.Jobs {
		states[j.State]++
	}
	for state, n := range states {
		tell(t.jobs, prometheus.GaugeValue, float64(n), string(state))
	}
	sum := v.Totals
	tell(t.epochs, prometheus.CounterValue, float64(sum.Epochs))
	tell(t.rows, prometheus.CounterValue, float64(sum.Rows))
	tell(t.remote, prometheus.CounterValue, float64(sum.Remote))
	tell(t.edges, prometheus.CounterValue, float64(sum.Edges))
	for kind, n := range sum.Sent.Bytes {
		tell(t.bytes, prometheus.CounterValue, float64(n), strategy.Kind(kind).String())
	}
	for phase, seconds := range map[string]float64{
		"sample": sum.Phases.Sample, "gather": sum.Phases.Gather, "compute": sum.Phases.Compute, "reduce": sum.Phases.Reduce, "wait": sum.Phases.Wait,
		"evaluate": sum.Evaluating,
	} {
		tell(t.seconds, prometheus.CounterValue, seconds, phase)
	}
	if v.Job == "" {
		return
	}
	tell(t.epoch, prometheus.GaugeValue, float64(v.Progress.Epoch), v.Job)
	tell(t.step, prometheus.GaugeValue, float64(v.Progress.Step), v.Job)
	tell(t.steps, prometheus.GaugeValue, float64(v.Progress.Steps), v.Job)
	if v.Latest.Epoch > 0 {
		tell(t.loss, prometheus.GaugeValue, v.Latest.Loss, v.Job)
	}
	if v.Evaluated.Eval != nil {
		if v.Evaluated.Eval.Val.Count > 0 {
			tell(t.accuracy, prometheus.GaugeValue, v.Evaluated.Eval.Val.Accuracy, v.Job)
		}
	}
}
