package node_test

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// Who asks the leader for something when that has just died asks the next one.
func TestJobIsStoppedAsTheLeaderDies(t *testing.T) {
	inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 200)
		under(c, c.Nodes[0], id, 3)
		leader := c.Leader()
		other := c.Others(leader)[0]
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			leader.Kill()
		}()
		<-time.After(50 * time.Millisecond)
		if err := other.API().StopJob(t.Context(), id); err != nil {
			t.Error(err)
		}
		<-killed
		waitState(c, other, id, "stopped")
	})
}

// What nodes share is said by the plan, and what they can't do together before a job
// begins.
func TestOwnersOfAJob(t *testing.T) {
	inSchoolWith(t, 3, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		epochs := 3
		ask := api.TrainRequest{Dataset: "g", Strategy: "leap", Epochs: &epochs, Set: []api.Setting{{Key: "leap.merge", Value: "4"}}}
		_, err := c.Nodes[1].API().StartJob(t.Context(), ask)
		refused(t, "more slots than nodes", err, "leap.merge=4: on 3 nodes a step has at most 3 slots")
		ask.Set[0].Value = "3"
		id, err := c.Nodes[1].API().StartJob(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		under(c, c.Nodes[0], id, 1)
		j, d := c.Nodes[0].Plan().Jobs[0], c.Nodes[0].Dataset("g")
		if len(j.Owners) != 8 {
			t.Fatalf("%+v", j)
		}
		for i, n := range j.Owners {
			if j.Nodes[n] != d.Shards[i].Owner {
				t.Errorf("shard %d is %s's, and %s computes it", i, d.Shards[i].Owner, j.Nodes[n])
			}
		}
		waitState(c, c.Nodes[0], id, "done")
	})
}
