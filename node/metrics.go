package node

import (
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// collector reads the node's own counters when somebody asks for metrics, so
// that nothing is counted twice.
type collector struct {
	node *Node

	bytes, received, requests, dropped, members, generation, leader, ready, expires, shards, stored, fetching, datasets *prometheus.Desc
	training
}

func (n *Node) registerMetrics() {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("hopmesh_"+name, help, labels, nil)
	}
	n.metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{
			node:       n,
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
	m := c.node.member.Load()
	if m == nil {
		gauge(c.ready, 0)
		return
	}
	for _, k := range mesh.Kinds() {
		n := m.mesh.Meter().Read(k)
		count(c.bytes, n.Sent, k.String())
		count(c.received, n.Received, k.String())
		count(c.requests, n.Requests, k.String())
	}
	count(c.dropped, m.mesh.DroppedPackets())
	s := m.plan.State()
	by := map[mesh.Status]int{mesh.Alive: 0, mesh.Failed: 0}
	for id := range s.Members {
		status := mesh.Failed
		if p, ok := m.mesh.Member(id); ok && p.Status == mesh.Alive {
			status = mesh.Alive
		}
		by[status]++
	}
	for status, n := range by {
		gauge(c.members, float64(n), string(status))
	}
	gauge(c.generation, float64(s.Generation))
	gauge(c.leader, truth(m.plan.IsLeader()))
	gauge(c.ready, truth(m.settled()))
	gauge(c.expires, time.Until(m.id.NotAfter()).Seconds())
	stock := m.keeper.Stock()
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
	c.training.collect(out, s, m.runner.View())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// say tells whoever listens to the event stream.
func (n *Node) say(kind, node, message string, generation uint64) {
	n.events.send(api.Event{Time: time.Now(), Type: kind, Node: node, Message: message, Generation: generation})
}
