package node_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Each job has its schedule in the plan from the start, the same on all nodes: also on one that
// comes back and goes on with the others.
func TestJobsHaveTheirScheduleInThePlan(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
		epochs, hidden, batch := 3, 8, 64
		start := func(strategy string, set ...api.Setting) string {
			r := api.TrainRequest{Dataset: "g", Strategy: strategy, Epochs: &epochs, Hidden: &hidden, Set: set}
			if strategy != "pipe" {
				r.Batch, r.Fanout = &batch, []int{4, 4}
			}
			id, err := c.Nodes[0].API().StartJob(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		for _, k := range []struct {
			strategy string
			set      []api.Setting
			by, how  string
		}{
			{"leap", nil, "leap", "models stay"},
			{"leap", []api.Setting{{Key: "leap.merge", Value: "2"}}, "leap", "models travel in 2 slots"},
			{"centric", nil, "centric", ""},
			{"auto", nil, "", ""},
			{"pipe", nil, "pipe", "stage"},
			{"grappa", nil, "grappa", ""},
		} {
			j := waitState(c, c.Nodes[0], start(k.strategy, k.set...), "done")
			if len(j.Schedule) != 1 {
				t.Errorf("%s: the schedule is %+v", k.strategy, j.Schedule)
				continue
			}
			e := j.Schedule[0]
			if e.From != 1 || e.Generation != j.Generation || e.Rate == 0 || k.by != "" && e.Strategy != k.by || !strings.Contains(e.How, k.how) || j.History[0].Strategy != e.Strategy || k.by == "" && e.Why == "" {
				t.Errorf("%s: the schedule is %+v, and the first epoch is by %s", k.strategy, e, j.History[0].Strategy)
			}
			for _, n := range c.Nodes {
				c.Wait("all have the schedule", time.Minute, func() bool { return slices.Equal(jobOn(n, j.ID).Schedule, j.Schedule) })
			}
		}
		epochs = 60
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		id := start("leap", api.Setting{Key: "leap.merge", Value: "3"})
		under(c, c.Nodes[0], id, 5)
		dead := c.Others(c.Leader())[0]
		other := c.Others(dead)[0]
		dead.Kill()
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
		under(c, other, id, len(jobOn(other, id).History)+5)
		dead.Restart()
		j := waitState(c, other, id, "done")
		var how []string
		for _, e := range j.Schedule {
			how = append(how, e.How)
		}
		// With other nodes there is another entry, and the first three follow theirs again.
		if want := []string{"models travel in 3 slots", "models travel in 2 slots", "models travel in 3 slots"}; !slices.Equal(how, want) {
			t.Errorf("the schedule is %+v", j.Schedule)
		}
		for _, e := range j.History {
			at := len(j.Schedule) - 1
			for j.Schedule[at].From > e.Epoch {
				at--
			}
			// Whoever assigns the job does not know an epoch that was done and not yet reported.
			late := e.Epoch == j.Schedule[at].From && e.Slots == 3-(at+1)%2
			if e.Slots != 3-at%2 && !late {
				t.Errorf("epoch %d of generation %d has %d slots, by %+v", e.Epoch, e.Generation, e.Slots, j.Schedule)
			}
		}
	})
}
