package node

import (
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/gauges"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// collector reads the node's own counters when somebody asks for metrics, so
// that nothing is counted twice.
type collector struct {
	parts *atomic.Pointer[parts]

	bytes, received, requests, dropped, members, generation, leader, ready, expires, shards, stored, fetching, datasets *prometheus.Desc
	training
}

// newMetrics makes the registry of a node's metrics. A node in no mesh exports its readiness
// only.
func newMetrics(of *atomic.Pointer[parts]) *prometheus.Registry {
	r := prometheus.NewRegistry()
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("hopmesh_"+name, help, labels, nil)
	}
	r.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{
			parts:      of,
			bytes:      desc("sent_bytes_total", "Bytes this node sent, payload and framing, by kind.", "kind"),
			received:   desc("received_bytes_total", "Bytes this node received, payload and framing, by kind.", "kind"),
			requests:   desc("requests_total", "Bulk requests and calls this node made or served, by kind.", "kind"),
			dropped:    desc("gossip_dropped_total", "Gossip packets dropped for want of room."),
			members:    desc("members", "Members of the plan, by what gossip says of them.", "status"),
			generation: desc("generation", "The generation of the plan in force."),
			leader:     desc("leader", "1 if this node leads."),
			ready:      desc("ready", "1 if a leader is known and this node is in the plan."),
			expires:    desc("certificate_expires_seconds", "Seconds until this node's certificate ends."),
			shards:     desc("shards_held", "Files of shards that lie whole on this node."),
			stored:     desc("shards_held_bytes", "Their bytes."),
			fetching:   desc("shards_fetching", "Shards that are on their way to this node."),
			datasets:   desc("datasets", "Datasets of the plan, by stage.", "stage"),
			training:   describeTraining(desc),
		})
	return r
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.bytes, c.received, c.requests, c.dropped, c.members, c.generation, c.leader, c.ready, c.expires, c.shards, c.stored, c.fetching, c.datasets} {
		out <- d
	}
	c.describe(out)
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	p := c.parts.Load()
	if p == nil {
		gauge(c.ready, 0)
		return
	}
	meshed, planned := p.member.Mesh(), p.member.Plan()
	for _, k := range mesh.Kinds() {
		n := meshed.Meter().Read(k)
		count(c.bytes, n.Sent, k.String())
		count(c.received, n.Received, k.String())
		count(c.requests, n.Requests, k.String())
	}
	count(c.dropped, meshed.DroppedPackets())
	s := planned.State()
	by := map[mesh.Status]int{mesh.Alive: 0, mesh.Failed: 0}
	for id := range s.Members {
		status := mesh.Failed
		if seen, ok := meshed.Member(id); ok && seen.Status == mesh.Alive {
			status = mesh.Alive
		}
		by[status]++
	}
	for status, n := range by {
		gauge(c.members, float64(n), string(status))
	}
	gauge(c.generation, float64(s.Generation))
	gauge(c.leader, truth(planned.IsLeader()))
	gauge(c.ready, truth(p.member.Settled()))
	gauge(c.expires, time.Until(p.member.ID().NotAfter()).Seconds())
	stock := p.data.Keeper.Stock()
	gauge(c.shards, float64(stock.Shards))
	gauge(c.stored, float64(stock.Bytes))
	gauge(c.fetching, float64(stock.Fetching))
	stages := map[plan.Stage]int{plan.Importing: 0, plan.Placing: 0, plan.Ready: 0}
	for _, d := range s.Datasets {
		stages[d.Stage]++
	}
	for stage, n := range stages {
		gauge(c.datasets, float64(n), string(stage))
	}
	c.training.collect(out, s, p.runner.View())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// training describes the metrics of jobs.
type training struct {
	jobs, epoch, step, steps, loss, accuracy, epochs, seconds, rows, remote, edges, bytes *prometheus.Desc
	each                                                                                  gauges.Jobs
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
		each:     gauges.New(desc),
	}
}

func (t training) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.jobs, t.epoch, t.step, t.steps, t.loss, t.accuracy, t.epochs, t.seconds, t.rows, t.remote, t.edges, t.bytes} {
		out <- d
	}
	t.each.Describe(out)
}

func (t training) collect(out chan<- prometheus.Metric, s *plan.State, v jobs.View) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	states := map[plan.JobState]int{plan.Queued: 0, plan.Running: 0, plan.Done: 0, plan.Failed: 0, plan.Stopped: 0}
	for _, j := range s.Jobs {
		states[j.State]++
	}
	for state, n := range states {
		send(t.jobs, prometheus.GaugeValue, float64(n), string(state))
	}
	t.each.Collect(out, s)
	sum := v.Totals
	send(t.epochs, prometheus.CounterValue, float64(sum.Epochs))
	send(t.rows, prometheus.CounterValue, float64(sum.Rows.Total()))
	send(t.remote, prometheus.CounterValue, float64(sum.Rows.Remote))
	send(t.edges, prometheus.CounterValue, float64(sum.Edges))
	for kind, n := range map[peer.Kind]uint64{
		peer.Feature: sum.Bytes.Feature, peer.Topology: sum.Bytes.Topology, peer.Model: sum.Bytes.Model, peer.Gradient: sum.Bytes.Gradient,
		peer.Activation: sum.Bytes.Activation, peer.Shard: sum.Bytes.Shard, peer.Control: sum.Bytes.Control,
	} {
		send(t.bytes, prometheus.CounterValue, float64(n), kind.String())
	}
	for phase, seconds := range map[string]float64{
		"sample": sum.Phases.Sample, "gather": sum.Phases.Gather, "compute": sum.Phases.Compute, "reduce": sum.Phases.Reduce, "wait": sum.Phases.Wait,
		"evaluate": sum.Evaluating,
	} {
		send(t.seconds, prometheus.CounterValue, seconds, phase)
	}
	if v.Job == "" {
		return
	}
	send(t.epoch, prometheus.GaugeValue, float64(v.Progress.Epoch), v.Job)
	send(t.step, prometheus.GaugeValue, float64(v.Progress.Step), v.Job)
	send(t.steps, prometheus.GaugeValue, float64(v.Progress.Steps), v.Job)
	if v.Latest.Epoch > 0 {
		send(t.loss, prometheus.GaugeValue, v.Latest.Loss, v.Job)
	}
	if e := v.Evaluated.Eval; e != nil && e.Val != nil {
		send(t.accuracy, prometheus.GaugeValue, *e.Val, v.Job)
	}
}
