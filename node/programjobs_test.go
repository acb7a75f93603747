package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/attach"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// errLeaves is the error of a program that ends by itself, and is started again.
var errLeaves = errors.New("the program leaves")

// besides has a program beside a node. ended receives it when the job has ended.
func besides(t *testing.T, n *nodetest.Instance, id string, before func(at desktest.Place) error) (ended chan *desktest.Program) {
	ended = make(chan *desktest.Program, 1)
	go func() {
		for t.Context().Err() == nil {
			a, err := n.API().Attach(t.Context(), id)
			if err == nil {
				on := a.(*attach.Talk).Program()
				p := &desktest.Program{Line: desktest.Local(on), Rate: 1e-4, Every: 2, Before: before}
				err = p.Run()
				on.Leave()
				if err == nil {
					ended <- p
				}
				if !errors.Is(err, errLeaves) {
					return // else its node is gone
				}
			}
			<-time.After(time.Second) // it is virtual
		}
	}()
	return ended
}

// Programs on three nodes come to the same, though one of them leaves and comes again, and a
// node dies.
func TestJobOfProgramsOutlivesANode(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 2))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 2, c.Nodes...) })
		epochs, layers, batch := 12, 2, 64
		id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
			Dataset: "g", Strategy: "program", Model: api.ProgramModel, Layers: &layers, Epochs: &epochs, Batch: &batch, Fanout: []int{4, 4},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Wait("the job waits for its programs", time.Minute, func() bool { return len(jobOn(c.Nodes[0], id).Problems) == 3 })
		pace := func(desktest.Place) error {
			<-time.After(100 * time.Millisecond) // virtual
			return nil
		}
		left := 0
		leaves := func(at desktest.Place) error { // only one program calls it
			if at.Epoch == 2 && at.Step == 1 && left == 0 {
				left++
				return errLeaves
			}
			return pace(at)
		}
		ended := []chan *desktest.Program{besides(t, c.Nodes[0], id, leaves), besides(t, c.Nodes[1], id, pace), besides(t, c.Nodes[2], id, pace)}
		under(c, c.Nodes[0], id, 3)
		dead := c.Others(c.Leader())[0]
		other := c.Others(dead)[0]
		dead.Kill()
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
		under(c, other, id, len(jobOn(other, id).History)+2)
		dead.Restart()
		c.Wait("the job waits for the program of the node that is back", time.Minute, func() bool {
			return slices.ContainsFunc(jobOn(other, id).Problems, func(p string) bool { return strings.Contains(p, "waits for its program on node "+dead.Name) })
		})
		ended[slices.Index(c.Nodes, dead)] = besides(t, dead, id, pace)
		j := waitState(c, other, id, "done")
		if len(j.History) != epochs || len(ages(j)) < 3 || left != 1 {
			t.Errorf("%d epochs in generations %v", len(j.History), ages(j))
		}
		var weights []float64
		for i, n := range c.Nodes {
			p := <-ended[i]
			if weights == nil {
				weights = p.Weights
			}
			for k, w := range p.Weights {
				if w != weights[k] {
					t.Fatalf("node %d has other weights", i)
				}
			}
			if p.Restarts == 0 && n != dead {
				t.Errorf("the program of node %d has never heard that it is to begin again", i)
			}
		}
	})
}
